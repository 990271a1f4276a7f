# toolsrv on stdio: docker run -i --rm -v toolsrv:/data toolsrv
# llama.cpp is compiled in the first stage; --build-arg WHEELS=<index of prebuilt ones> spares it.
FROM python:3.13-slim-bookworm AS build

ARG WHEELS=""
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential cmake git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY server server
COPY runtime runtime
COPY registry registry
COPY catalogs catalogs
COPY lab lab
COPY bundle/llama.cmake bundle/
# GGML_NATIVE=OFF: the image runs on other processors than the one that built it.
RUN python -m venv /venv \
    && CMAKE_ARGS="-DGGML_NATIVE=OFF -DCMAKE_PROJECT_INCLUDE=/src/bundle/llama.cmake" \
       /venv/bin/pip install --no-cache-dir --prefer-binary \
       ${WHEELS:+--extra-index-url "$WHEELS"} .

FROM python:3.13-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 toolsrv \
    && install --directory --owner 10001 /data
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH TOOLSRV_DATA_DIR=/data
USER 10001
VOLUME /data
ENTRYPOINT ["toolsrv"]
CMD ["serve"]
