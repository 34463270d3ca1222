// Files of torch.save whole, and the VAEs among them.
#include "harness.h"
#include "models/model_package.h"
#include "models/script_model.h"
#include "models/state_dict.h"

void crais::fuzz::read(std::string_view input) {
  const std::string path = file(archive(input));
  is_model_package(path);
  is_script_model(path);
  const StateDict state = read_state_dict(path);
  StateDictOptions options;
  options.activation = "tanh";
  vae_from_state_dict(state, options).describe();
}
