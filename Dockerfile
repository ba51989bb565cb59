# The lab in an image. By itself it serves fault proxies under Toxiproxy's HTTP API; any other command of `lab` works.
#
#   docker build -t lab:0.1.0 .
#   docker run --rm -p 127.0.0.1:8474:8474 lab:0.1.0
FROM python:3.11.14-slim-bookworm

ENV PATH=/opt/lab/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

RUN useradd --uid 10001 --create-home lab

WORKDIR /lab
COPY pyproject.toml constraints.txt ./
COPY lab lab
COPY contract contract
COPY fixtures fixtures
COPY scenarios scenarios
COPY docker docker

# Editable, because the lab reads its contract from beside the package.
RUN python -m venv /opt/lab
RUN pip install --no-cache-dir --disable-pip-version-check -c constraints.txt -e .

# What a run leaves, and what the doubles hand to each other, is the user's alone.
RUN install -d -o lab -g lab -m 0700 runs /run/lab

USER lab
EXPOSE 8474
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=5 \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8474, timeout=2); c.request('GET', '/version'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["lab"]
CMD ["serve", "faults", "--host", "0.0.0.0"]
