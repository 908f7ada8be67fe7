#!/bin/bash
# Compile the kernels once, on a node of the kind that the array runs on: sbatch warm.sh
#SBATCH --job-name=nclone-warm
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=00:15:00
set -eu
export NCLONE_ENV_CACHE_DIR="${NCLONE_ENV_CACHE_DIR:-$PWD/kernels}" # a folder that all nodes see
nclone-env warmup
