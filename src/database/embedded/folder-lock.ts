import { createHash, randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Another process holds the folder. */
export class FolderHeldError extends Error {
  override name = 'FolderHeldError' as const;
}

/** The longest path that a socket may have everywhere, in bytes (macOS; Linux takes a few more). */
const MAX_SOCKET_PATH = 103;
const LONGEST_NAME = 'lock-01234567';
const LOCK_NAME = /^lock\.(\d+)$/;
const ANSWER_MS = 500;
/** Where the holder tells about itself too: while it makes its database it is too busy to answer. */
const HOLDER_FILE = 'lock-holder';

const ABOUT = `process ${process.pid} on ${hostname()}, since ${new Date().toISOString()}`;
const NAMELESS = 'a process that does not answer';

/**
 * Makes this process the only one that uses a folder.
 *
 * The lock is a socket that the holder listens on. The kernel answers for the holder as long as it lives, frozen or not,
 * and stops when it dies, so a lock is never stale by age, by a pid that is used again, or in another container on the
 * same volume. Who connects is told who holds.
 *
 * A dead lock is not removed to take its place, since by then another process may have taken it. The locks are numbered:
 * whoever makes the number after a dead one holds, and the last number always stays.
 *
 * @returns a function that gives the folder free.
 * @throws {FolderHeldError} naming the holder.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = realpathSync(folder);
  if (process.platform === 'win32') return lockByPipe(path);
  const place = placeOf(path);
  for (;;) {
    const latest = latestLock(place);
    const holder = await askHolder(lockPath(place, latest));
    if (holder !== undefined)
      throw new FolderHeldError(`${folder} is in use by ${holder || readHolder(place)}`);
    const server = await makeLock(place, latest + 1);
    if (server !== undefined) return () => close(server);
  }
}

/** @returns undefined where another process was faster. */
async function makeLock(place: string, number: number): Promise<Server | undefined> {
  // It listens before it gets its number, so that nobody finds it dead.
  const nameless = join(place, `lock-${randomBytes(4).toString('hex')}`);
  const server = await listen(nameless);
  const path = lockPath(place, number);
  try {
    linkSync(nameless, path);
    // This process may have slept since it looked, and the number have been made and removed meanwhile.
    if (latestLock(place) === number) {
      removeOlder(place, number);
      writeFileSync(join(place, HOLDER_FILE), ABOUT);
      return server;
    }
    rmSync(path, { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(nameless, { force: true });
  }
  await close(server);
  return undefined;
}

/** Windows has named pipes in place of such sockets. Only one process can make a pipe, which goes when that process ends. */
async function lockByPipe(folder: string): Promise<() => Promise<void>> {
  const path = `\\\\.\\pipe\\plant-store-${digestOf(folder)}`;
  try {
    const server = await listen(path);
    return () => close(server);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new FolderHeldError(`${folder} is in use by ${(await askHolder(path)) || NAMELESS}`, {
      cause: error,
    });
  }
}

/** Listens at a path, and tells everybody who connects about this process. */
function listen(path: string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => socket.destroy()).end(ABOUT)).unref();
  return new Promise((done, fail) => server.on('error', fail).listen(path, () => done(server)));
}

function close(server: Server): Promise<void> {
  return new Promise((done) => server.close(() => done()));
}

function digestOf(folder: string): string {
  return createHash('sha256').update(folder).digest('hex').slice(0, 32);
}

function lockPath(place: string, number: number): string {
  return join(place, `lock.${number}`);
}

function locks(place: string): number[] {
  return readdirSync(place).flatMap((name) => Number(LOCK_NAME.exec(name)?.[1] ?? []));
}

function latestLock(place: string): number {
  return Math.max(0, ...locks(place));
}

function readHolder(place: string): string {
  try {
    return readFileSync(join(place, HOLDER_FILE), 'utf8');
  } catch {
    return NAMELESS;
  }
}

function removeOlder(place: string, number: number): void {
  for (const older of locks(place)) if (older < number) rmSync(lockPath(place, older), { force: true });
}

/** Where the sockets are: in the folder, or where its path is too long for that, in one of this machine's own. */
function placeOf(folder: string): string {
  if (Buffer.byteLength(join(folder, LONGEST_NAME)) <= MAX_SOCKET_PATH) return folder;
  const place = join(tmpdir(), `plant-store-${digestOf(folder)}`);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  return place;
}

/** @returns the holder's words, none where it does not answer, or undefined where nobody listens. */
function askHolder(path: string): Promise<string | undefined> {
  return new Promise((done) => {
    let words = '';
    let isDead = false;
    const socket = connect(path);
    const timer = setTimeout(() => socket.destroy(), ANSWER_MS);
    socket
      .on('data', (data) => (words += data.toString()))
      // Any other error, such as a line of callers that is full, is no sign that the holder is dead.
      .on(
        'error',
        ({ code }: NodeJS.ErrnoException) => (isDead = code === 'ECONNREFUSED' || code === 'ENOENT'),
      )
      .on('close', () => {
        clearTimeout(timer);
        done(isDead ? undefined : words);
      });
  });
}
