# docker build -t crais . && docker run crais
# The image holds a build and its LibTorch; a container evaluates the shipped VAE (scripts/quickstart).
FROM debian:12-slim
WORKDIR /crais
COPY . .
RUN scripts/quickstart --simulate 1 && rm -rf results /var/lib/apt/lists/*
ENTRYPOINT ["scripts/quickstart"]
