# A user's server on a JupyterHub whose spawner starts containers (DockerSpawner, Zero to JupyterHub). From the root:
#   docker build -f containers/jupyterhub.Dockerfile -t gpulab-hub --build-arg JUPYTERHUB=6.1.1 .
# JUPYTERHUB is the hub's own version. Every server mounts the exchange, which keeps what goes from teacher to student
# and back, at /srv/nbgrader/exchange, and each student's home at /home/jovyan.
FROM python:3.12-bookworm

# No solutions and no judge: this image is the students'. A teacher's server mounts a clone of the course beside it.
WORKDIR /opt/gpulab
COPY Makefile pyproject.toml constraints.txt constraints-compiler.txt README.md LICENSE ./
COPY tools tools
COPY gpulab gpulab
ARG CUDA=13
ARG TORCH_INDEX=
RUN make setup CUDA=${CUDA} TORCH_INDEX=${TORCH_INDEX}
ARG JUPYTERHUB
RUN .venv/bin/python -m pip install --no-cache-dir "jupyterhub==${JUPYTERHUB}"

# Settings for everybody: where the exchange is, and which course it is.
COPY containers/nbgrader_config.py /etc/jupyter/nbgrader_config.py
# How the labs look in JupyterLab, as `gpulab lab` shows them.
COPY gpulab/app/course/jupyter/labconfig/default_setting_overrides.json /etc/jupyter/labconfig/
COPY gpulab/app/course/jupyter/labextensions /usr/local/share/jupyter/labextensions
ENV PATH=/opt/gpulab/.venv/bin:$PATH

# nbgrader asks the hub for a student's name only where the system's user is called jovyan.
RUN useradd --create-home jovyan
USER jovyan
WORKDIR /home/jovyan
CMD ["jupyterhub-singleuser"]
