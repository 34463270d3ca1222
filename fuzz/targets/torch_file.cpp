// Files of torch.save whole, and the VAEs among them.
#include "harness.h"
#include "models/package_model.h"
#include "models/script_model.h"
#include "models/state_dict.h"

void crais::fuzz::read(std::string_view input) {
  const std::string path = file(archive(input));
  is_package_model(path);
  is_script_model(path);
  const StateDict state = read_state_dict(path);
  StateDictOptions options;
  options.activation = "tanh";
  vae_from_state_dict(state, options).describe();
}
