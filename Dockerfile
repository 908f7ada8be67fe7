# The environment on a CPU, with kernels compiled ahead of time (docs/installation.md). For the trainer:
#   docker build --build-arg EXTRAS=[train,video] -t nclone-env .
FROM python:3.12-slim
ARG EXTRAS=""
WORKDIR /src
COPY . .
RUN python -m pip install --no-cache-dir --constraint constraints.txt ".${EXTRAS}"
RUN useradd --create-home ninja
USER ninja
WORKDIR /home/ninja
RUN nclone-env warmup
ENTRYPOINT ["nclone-env"]
CMD ["--help"]
