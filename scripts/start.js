// `npm start`: compiles changes, then runs the service in this process, so that signals reach it.
import { spawnSync } from 'node:child_process';
import { setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';
import { build, canBuild, isBuilt } from './build.js';

const PARENT_CHECK_MS = 500;

function stop(sentence) {
  console.error(`Plant Store was not started: ${sentence}`);
  process.exit(1);
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

if (!canBuild()) stop('its packages are missing; install them with `npm ci`.');
const wasBuilt = isBuilt();
// Not on standard output, which carries only the log.
console.error(wasBuilt ? 'Compiling what changed' : 'Compiling; the first time takes a few seconds');
try {
  await build();
} catch ({ message }) {
  // TS5033: could not write file. If it cannot set a file's time, the compiler throws the system's error instead.
  if (/TS5033|E(?:ROFS|ACCES|PERM)/.test(message))
    stop(
      wasBuilt
        ? 'the changes cannot be compiled because dist is not writable; `npm run start:prod` runs the existing build.'
        : 'it cannot be compiled because dist is not writable.',
    );
  console.error(message);
  stop('it does not compile; see the errors above.');
}

if (process.env.npm_lifecycle_event !== undefined && process.platform !== 'win32') endWithNpm();
process.chdir(fileURLToPath(new URL('..', import.meta.url)));
await import('../dist/main.js');
