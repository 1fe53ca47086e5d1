// The servers under load: the service as shipped, and the baselines that it is compared with.
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { build as buildService } from '../scripts/build.js';
import { DISK } from './postgres.js';
import { freePort } from '../test/support/machine.js';
import { atEnd, BenchError, run, start } from './processes.js';

export const TOKEN = 'bench-token-0123456789';
const START_MS = 30_000;
const BASELINE_VARIABLES = { ACCESS_TOKEN: TOKEN, PYTHONDONTWRITEBYTECODE: '1' };

const file = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const SERVICE = file('dist/main.js');
/** The same before it is joined with its packages, so that each file can be changed. */
const SERVICE_IN_PARTS = file('dist/src/main.js');
const PATCHED = ['--import', pathToFileURL(file('bench/patched.js')).href];

/** Options of Node.js for a service that forces nothing to the disk. */
export const WITHOUT_FSYNC = ['--import', pathToFileURL(file('bench/no-fsync.js')).href];

const GO_BINARY = file('dist/bench/go-pgx');
const GO_PATH = '/usr/share/gocode';
const PYTHON = '/usr/bin/python3';

const node = (main) => ({ command: process.execPath, args: () => [file(main)] });

/** How each baseline is started, by its name in the results. `missing` names the packages that it lacks, if any. */
export const BASELINES = {
  'Node http + pg': node('bench/baselines/http-pg.js'),
  'Fastify + pg': node('bench/baselines/fastify-pg.js'),
  'Fastify + group commit': node('bench/baselines/fastify-group-commit.js'),
  'Fastify, same duties': node('bench/baselines/fastify-same-duties.js'),
  'NestJS stock': node('dist/bench/baselines/nest-typeorm.js'),
  'Go net/http + pgx': {
    command: GO_BINARY,
    args: () => [],
    missing: () =>
      existsSync(`${GO_PATH}/src/github.com/jackc/pgx/v4`) && runs('go', ['version'])
        ? undefined
        : 'golang-go golang-github-jackc-pgx-v4-dev',
  },
  'FastAPI + asyncpg': {
    command: PYTHON,
    // Started as `fastapi run` and FastAPI's documentation on deployment do, without the access log.
    args: (port) => [
      ...['-m', 'uvicorn', 'fastapi_asyncpg:app', '--app-dir', file('bench/baselines')],
      ...['--port', String(port), '--no-access-log', '--log-level', 'warning'],
    ],
    missing: () =>
      runs(PYTHON, ['-c', 'import fastapi, asyncpg, uvicorn, uvloop, httptools'])
        ? undefined
        : 'python3-fastapi uvicorn python3-asyncpg python3-uvloop python3-httptools',
  },
};

function runs(command, args) {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Builds the service, and the baselines that need a compiler. */
export async function build() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  await buildService();
  await run(process.execPath, [tsc, '-p', file('bench/tsconfig.json')]);
  if (BASELINES['Go net/http + pgx'].missing() === undefined) {
    // Debian's Go libraries do not use modules.
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PATH, GOFLAGS: '' };
    await run('go', ['build', '-o', GO_BINARY, file('bench/baselines/go-pgx/main.go')], { env });
  }
}

/**
 * @param database is undefined for the embedded one, in a new folder.
 * @param options.env adds to the variables of the service.
 * @param options.log is the file for its standard output.
 * @param options.patches changes its source, see patched.js.
 */
export async function startService(database, { env = {}, log, nodeOptions = [], patches } = {}) {
  const variables = {
    ACCESS_TOKENS: TOKEN,
    METRICS: 'on',
    LOG_LEVEL: 'warn',
    ...(database === undefined && { DATA_DIR: dataFolder() }),
    ...(patches !== undefined && { BENCH_PATCHES: JSON.stringify(patches) }),
    ...env,
  };
  const program = {
    command: process.execPath,
    args: () => [...nodeOptions, ...(patches === undefined ? [SERVICE] : [...PATCHED, SERVICE_IN_PARTS])],
  };
  return startServer('The service', program, database, variables, log);
}

/** @returns the server; undefined, with a message about what to install, if the baseline cannot run. */
export async function startBaseline(name, database) {
  const missing = BASELINES[name].missing?.();
  if (missing === undefined) return startServer(name, BASELINES[name], database, BASELINE_VARIABLES);
  console.log(`${name}: skipped. It needs: apt-get install ${missing}`);
  return undefined;
}

function dataFolder() {
  const folder = mkdtempSync(`${DISK}/plant-store-bench-data-`);
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function startServer(name, { command, args }, database, variables, log = '/dev/null') {
  const port = await freePort();
  const output = openSync(log, 'a');
  const begun = performance.now();
  const server = start(command, args(port), {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(port),
      ...(database !== undefined && { DATABASE_URL: database.url }),
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

/** A baseline has no readiness check and listens when it is ready, so any answer but 503 means ready. */
function isReady(port) {
  return new Promise((resolve) => {
    get({ port, host: '127.0.0.1', path: '/health/ready', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode !== 503);
    }).on('error', () => resolve(false));
  });
}

/** @returns how many plants the service has created, by its own metrics. */
export function countCreated({ port }) {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/metrics', agent: false }, async (response) => {
      const [, count] = /^plants_creates_total\{outcome="created"\} (\d+)/m.exec(
        (await response.setEncoding('utf8').toArray()).join(''),
      );
      resolve(Number(count));
    }).on('error', reject);
  });
}
