#include "programs/train_vae/train_vae.h"

int main(int argc, char** argv) { return crais::train_vae(argc, argv); }
