# Debian's slim image and not Alpine's: the test suite runs on glibc.
FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# TypeScript is an optional dependency of a dependency, and not needed to run.
RUN npm ci --omit=dev --omit=optional

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY migrations ./migrations
RUN npm run build

FROM node:24-slim
# Nothing here installs or builds.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn* /opt/yarn*
WORKDIR /app
ENV NODE_ENV=production
ENV HOST=0.0.0.0
COPY package.json ./
COPY deploy/healthcheck.js ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# A place for the embedded database, for who sets DATA_DIR=/data; else nothing is ever written.
RUN install -d -o node -g node -m 700 /data
USER 1000:1000
EXPOSE 3000
# Live and not ready: who acts on this restarts the container, which mends a process that hangs and no database.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["node", "healthcheck.js", "live"]
# Node itself is the first process, so the signals reach it.
CMD ["node", "dist/src/main.js"]
