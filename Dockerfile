# posenc-server in a container: built and run on Debian 12, as a non-root user.
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY deploy/packages.txt deploy/install-packages.sh deploy/
RUN sh deploy/install-packages.sh
COPY . .
RUN cmake --preset release -DPOSENC_BUILD_TESTS=OFF \
 && cmake --build --preset release \
 && cmake --install build/release --prefix /opt/posenc --strip

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends \
      libgrpc++1.51 libhwy1 libprotobuf32 libspdlog1.10 libxxhash0 >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/posenc/bin/ /usr/local/bin/
USER 65532:65532
# All interfaces inside the container; publish the port on loopback or a private
# network only, there is no authentication.
ENV POSENC_LISTEN=[::]:50051
EXPOSE 50051
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s \
  CMD ["posenc", "health", "--server", "127.0.0.1:50051"]
ENTRYPOINT ["posenc-server"]
