// The servers that are loaded: the service as shipped, and the baselines it is compared with.
import { closeSync, openSync } from 'node:fs';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { BenchError, freePort, run, start } from './processes.js';

export const TOKEN = 'bench-token-0123456789';
const START_MS = 30_000;

const file = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const SERVICE = 'dist/src/main.js';

/** By the name that the results have for each. */
export const BASELINES = {
  'Node http + pg': 'bench/baselines/http-pg.js',
  'Fastify + pg': 'bench/baselines/fastify-pg.js',
  'Fastify + group commit': 'bench/baselines/fastify-group-commit.js',
  'NestJS stock': 'dist/bench/baselines/nest-typeorm.js',
};

/** Builds the service, and the baseline that needs a compiler for its decorators. */
export async function build() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  for (const project of ['tsconfig.build.json', 'bench/tsconfig.json']) {
    await run(process.execPath, [tsc, '-p', file(project)]);
  }
}

/** @param options.env adds to the variables of the service; options.log is the file for what it prints. */
export async function startService(database, { env = {}, log, nodeOptions = [] } = {}) {
  const variables = { ACCESS_TOKENS: TOKEN, METRICS: 'on', LOG_LEVEL: 'warn', ...env };
  return startServer('The service', SERVICE, database, variables, { log, nodeOptions });
}

export function startBaseline(name, database) {
  return startServer(name, BASELINES[name], database, { ACCESS_TOKEN: TOKEN });
}

async function startServer(name, main, database, variables, { log = '/dev/null', nodeOptions = [] } = {}) {
  const port = await freePort();
  const output = openSync(log, 'a');
  const begun = performance.now();
  const server = start(process.execPath, [...nodeOptions, file(main)], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(port),
      DATABASE_URL: database.url,
      ...variables,
    },
    stdio: ['ignore', output, 'inherit'],
  });
  closeSync(output);
  while (!(await isReady(port))) {
    if (server.hasEnded() || performance.now() - begun > START_MS) {
      throw new BenchError(`${name} did not become ready`);
    }
    await delay(5);
  }
  return { name, port, pid: server.pid, stop: server.stop, startMs: performance.now() - begun };
}

/** Any answer but 503 to the service's readiness probe; the baselines have none and listen once they are ready. */
function isReady(port) {
  return new Promise((resolve) => {
    request({ port, host: '127.0.0.1', path: '/health/ready', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode !== 503);
    })
      .on('error', () => resolve(false))
      .end();
  });
}
