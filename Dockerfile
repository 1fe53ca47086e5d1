# Debian's slim image and not Alpine's: the tests run on glibc. The digest decides, and the tag names its version:
# change both together (docs/OPERATIONS.md, Supply chain).
FROM node:24.16.0-slim@sha256:2c87ef9bd3c6a3bd4b472b4bec2ce9d16354b0c574f736c476489d09f560a203 AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# TypeScript is an optional dependency of a dependency, and not needed to run.
RUN npm ci --omit=dev --omit=optional

FROM node:24.16.0-slim@sha256:2c87ef9bd3c6a3bd4b472b4bec2ce9d16354b0c574f736c476489d09f560a203 AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY migrations ./migrations
COPY scripts/build.js ./scripts/build.js
RUN npm run build

FROM node:24.16.0-slim@sha256:2c87ef9bd3c6a3bd4b472b4bec2ce9d16354b0c574f736c476489d09f560a203
# Nothing here installs or builds.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn* /opt/yarn*
WORKDIR /app
ENV NODE_ENV=production
ENV HOST=0.0.0.0
COPY package.json ./
COPY deploy/healthcheck.js ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# For an embedded database, with DATA_DIR=/data. Without one the service writes no file.
RUN install -d -o node -g node -m 700 /data
USER 1000:1000
EXPOSE 3000
# Liveness, not readiness: an orchestrator may restart an unhealthy container. That helps if the process hangs, not if the
# database is down.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["node", "healthcheck.js", "live"]
# Node.js itself is process 1, so signals reach it.
CMD ["node", "dist/main.js"]
