# A machine with an NVIDIA GPU, rented or your own. From the repository's root:
#   docker build -f containers/gpu.Dockerfile -t gpulab .
#   docker run --gpus all --shm-size 2g -p 8888:8888 -v gpulab-labs:/home/learner/course/labs gpulab
# The address with its token is in the output. The volume keeps your notebooks.
#
# NVIDIA's driver comes from the machine, its compiler from the package index: no CUDA image is needed.
FROM python:3.12-bookworm
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

RUN useradd --create-home learner
USER learner
WORKDIR /home/learner/course
COPY --chown=learner . .

# While the image is made there is no driver to ask: `--build-arg CUDA=12` for one that is older than CUDA 13,
# together with an index of PyTorch's builds for CUDA 12.
ARG CUDA=13
ARG TORCH_INDEX=
RUN make setup CUDA=${CUDA} TORCH_INDEX=${TORCH_INDEX}

EXPOSE 8888
CMD [".venv/bin/gpulab", "lab", "--ip=0.0.0.0", "--no-browser"]
