# A run served over HTTP, on CPUs. The run is mounted at /model:
#
#     docker build --tag sagl .
#     docker run --rm --publish 127.0.0.1:8000:8000 --env-file token.env \
#         --volume "$PWD/run:/model:ro" sagl
#
# where token.env holds SAGL_TOKEN=… and is kept out of images and repositories.
FROM python:3.12-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin sagl
WORKDIR /build
COPY constraints.txt ./
# First and by itself, so that nothing brings the CUDA build.
RUN pip install -c constraints.txt --index-url https://download.pytorch.org/whl/cpu torch
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install -c constraints.txt ".[serve]"

USER 10001
WORKDIR /

EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=4)"]

ENTRYPOINT ["sagl", "serve", "/model", "--host", "0.0.0.0"]
