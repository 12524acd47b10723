# A static binary and the CA roots, nothing else. Build from the top of the
# checkout:
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t countersign .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /bot ./cmd/bot

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /bot /bot
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/bot"]
CMD ["serve", "--config", "/etc/countersign/config.yaml"]
