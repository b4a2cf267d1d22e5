# The client, which samples, scores and reports. A server with a GPU runs elsewhere. Usage: docs/gpu-nodes.md.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY packages packages
COPY harness harness
COPY server_launchers server_launchers
COPY datasets datasets
COPY results/published results/published
# Without a value, these variables do not affect pip.
ARG EXTRAS
ARG PIP_INDEX_URL
RUN python -m venv /opt/harness && /opt/harness/bin/pip install --no-cache-dir ".${EXTRAS}"

FROM python:${PYTHON}-slim
COPY --from=build /opt/harness /opt/harness
# Only results, state and downloads are written, all below /data, where a host folder can be mounted.
RUN useradd --uid 10001 --create-home harness && install -d -o harness /data
ENV PATH=/opt/harness/bin:$PATH HARNESS_CACHE=/data/cache HARNESS_STATE=/data/state HF_HOME=/data/hub \
    PYTHONDONTWRITEBYTECODE=1
USER harness
WORKDIR /data
ENTRYPOINT ["harness"]
CMD ["--help"]
