# The environment on a CPU, with its kernels compiled inside the package (docs/installation.md). For the trainer:
#   docker build --build-arg EXTRAS=[train,video] -t nclone-env .
# Nothing is written at run time but what you ask for: `docker run --read-only` works, as any user.
FROM python:3.12-slim AS build
ARG EXTRAS=""
WORKDIR /src
COPY . .
RUN python -m pip install --no-cache-dir --constraint constraints.txt ".${EXTRAS}" build hatchling hatch-fancy-pypi-readme
RUN NCLONE_ENV_CODE=1 python -m build --wheel --no-isolation --outdir /wheels

FROM python:3.12-slim
ARG EXTRAS=""
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN python -m pip install --no-cache-dir --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)${EXTRAS}"
RUN useradd --create-home ninja
USER ninja
WORKDIR /home/ninja
ENTRYPOINT ["nclone-env"]
CMD ["--help"]
