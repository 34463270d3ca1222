// Files of torch.save whole, and the VAEs among them.
#include "harness.h"
#include "models/state_dict.h"

void crais::fuzz::read(std::string_view input) {
  const StateDict state = read_state_dict(file(archive(input)));
  StateDictOptions options;
  options.activation = "tanh";
  options.decoder_layers = "fc3,fc4";
  options.encoder_layers = "fc1,fc21+fc22";
  vae_from_state_dict(state, options).describe();
}
