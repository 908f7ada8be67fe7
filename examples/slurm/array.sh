#!/bin/bash
# 500 runs, 100 seeds of 5 learning rates: sbatch --dependency=afterok:JOB_OF_WARM array.sh
#SBATCH --job-name=nclone
#SBATCH --array=0-499
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
#SBATCH --open-mode=append
set -u
export NCLONE_ENV_CACHE_DIR="${NCLONE_ENV_CACHE_DIR:-$PWD/kernels}"
rates=(0.0003 0.0005 0.001 0.002 0.003)
rate=${rates[$((SLURM_ARRAY_TASK_ID / 100))]}
seed=$((SLURM_ARRAY_TASK_ID % 100))
name="rate$rate-seed$seed"

if [ -e "runs/$name/checkpoint.pt" ]; then # interrupted before: the run ends as it would have without
    set -- --resume "runs/$name"
else
    set -- --name "$name" --overwrite --levels "${LEVELS:-first-steps}" --learning-rate "$rate" --seed "$seed" \
        --total-timesteps "${TIMESTEPS:-2000000}"
fi
nclone-env train "$@" --num-threads "${SLURM_CPUS_PER_TASK:-2}" --no-video &
training=$!
trap 'kill -TERM $training 2>/dev/null' TERM # from SLURM, two minutes before the time is over, or at a preemption
wait $training
status=$?
while kill -0 $training 2>/dev/null; do # the signal has ended the first wait; the run saves itself
    wait $training
    status=$?
done
if [ $status -eq 143 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
    status=0
fi
exit $status
