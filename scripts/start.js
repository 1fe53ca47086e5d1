// `npm start`: compiles changes, then runs the service in this process, so that signals reach it.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';

const dist = new URL('../dist/', import.meta.url);
const main = new URL('main.js', dist);
const PARENT_CHECK_MS = 500;

function stop(sentence) {
  console.error(`Plant Store was not started: ${sentence}`);
  process.exit(1);
}

function findCompiler() {
  try {
    return createRequire(import.meta.url).resolve('typescript/bin/tsc');
  } catch {
    return stop('its packages are missing; install them with `npm ci`.');
  }
}

function isReadOnly(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/** Ends this process if npm is killed and cannot forward a signal. npm may have started it through a shell. */
function endWithNpm() {
  const ps = spawnSync('ps', ['-o', 'ppid=,comm=', '-p', process.ppid], { encoding: 'utf8' });
  const [grandparent, parentName = ''] = (ps.stdout ?? '').trim().split(/\s+/);
  const npm = /sh$/.test(parentName) ? Number(grandparent) : process.ppid;
  setInterval(() => {
    try {
      process.kill(npm, 0);
    } catch {
      process.kill(process.pid, 'SIGTERM');
    }
  }, PARENT_CHECK_MS).unref();
}

const compiler = findCompiler();
const isCompiled = existsSync(main);
// Not on standard output, which carries only the log.
console.error(isCompiled ? 'Compiling what changed' : 'Compiling; the first time takes some seconds');
// In its build mode the compiler first compares the times of files, and ends at once if none is newer.
const build = spawnSync(
  process.execPath,
  [compiler, '--build', 'tsconfig.build.json', ...(isCompiled ? [] : ['--force'])],
  { cwd: new URL('..', import.meta.url), encoding: 'utf8' },
);
if (build.status !== 0) {
  const output = build.stdout + build.stderr;
  // TS5033: could not write file. If it cannot set a file's time, the compiler throws the system's error instead.
  if (/TS5033|E(?:ROFS|ACCES|PERM)/.test(output))
    stop(
      isCompiled
        ? 'what changed cannot be compiled, as the folder dist cannot be written; `npm run start:prod` runs what is there.'
        : 'it cannot be compiled, as the folder dist cannot be written.',
    );
  console.error(output);
  stop('it does not compile, for the errors above.');
}
// Where `dist` cannot be written, what was bundled before is up to date: the compiler had nothing to write.
if (!isReadOnly(dist)) await (await import('./bundle.js')).bundle();

if (process.env.npm_lifecycle_event !== undefined && process.platform !== 'win32') endWithNpm();
process.chdir(fileURLToPath(new URL('..', import.meta.url)));
await import(main.href);
