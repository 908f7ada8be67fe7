# The environment and the trainer on a CPU, with kernels compiled ahead of time (docs/installation.md).
FROM python:3.12-slim
WORKDIR /src
COPY . .
RUN python -m pip install --no-cache-dir --constraint constraints.txt ".[train,video]"
RUN useradd --create-home ninja
USER ninja
WORKDIR /home/ninja
RUN nclone-env warmup
ENTRYPOINT ["nclone-env"]
CMD ["train"]
