// A VAE of another program: MLPs found among the tensors of a PyTorch state_dict.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "models/model_file.h"
#include "models/vae.h"

namespace crais {

/// Metadata are those of a safetensors file.
struct StateDict : SafeTensors {
  std::string source;  // a file's path, for messages
  std::string sha256;  // of the file
};

/// A safetensors file or one of torch.save, told apart by their content. Throws Error: kNoInput if
/// the file is missing, kData if it is neither or damaged.
StateDict read_state_dict(const ModelFile& file);

/// What a state_dict does not say, or says in names that nobody could know.
struct StateDictOptions {
  /// Linear layers in their order, "fc3,fc4"; where empty, found by inspection. A name may leave
  /// out what goes before ("fc3" for "module.fc3") if one layer alone ends so.
  std::string decoder_layers;
  /// "fc1,fc21+fc22": the last are the heads of mean and log-variance. "fc1,fc2": the last gives
  /// the mean and then the log-variance. "none": do without an encoder.
  std::string encoder_layers;
  std::string activation;  // between layers; where empty, "activation" of the metadata
  std::string likelihood;  // where empty, "likelihood" of the metadata, or else bernoulli
  int64_t image_rows = 0;  // 0: images are square
  int64_t image_cols = 0;
};

/// A VAE, and where in the state_dict it comes from.
struct RecognisedVae {
  Vae vae;
  std::vector<std::string> decoder;  // names of layers
  std::vector<std::string> encoder;  // the heads last; empty if there is none
  std::vector<std::string> unused;   // tensors that are no part of it

  /// Lines of text: layers and their sizes, activation, likelihood, images, tensors without use.
  std::string describe() const;
};

/// Takes encoder and decoder out of a state_dict, as float32; a layer without bias gets one of
/// zeros.
///
/// By inspection: layers whose names have a part such as "decoder", "dec" or "generator" are the
/// decoder, those with "encoder" or "enc" the encoder; without such names, the layers in the
/// natural order of their names must divide into an encoder and a decoder in one way. Bernoulli
/// outputs are logits: a sigmoid at the decoder's end is part of the likelihood and not of the MLP.
///
/// Throws Error: kArgument where the options must say more or say what cannot be, listing the
/// layers; kData if a tensor is not finite or a bias does not fit its layer.
RecognisedVae vae_from_state_dict(const StateDict& state, const StateDictOptions& options);

}  // namespace crais
