import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Another process holds the folder. The message names that process. */
export class FolderHeldError extends Error {
  override name = 'FolderHeldError' as const;
}

/** The longest path of a socket that every system allows, in bytes (macOS's limit; Linux allows a few more). */
const MAX_SOCKET_PATH = 103;
const LONGEST_NAME = 'lock-01234567';
const LOCK_NAME = /^lock\.(\d+)$/;
const ANSWER_MS = 500;
/** The holder also describes itself in this file, since it is too busy to answer while it creates its database. */
const HOLDER_FILE = 'lock-holder';

const ABOUT = `process ${process.pid} on ${hostname()}, since ${new Date().toISOString()}`;
const NAMELESS = 'a process that does not answer';

/**
 * Makes this process the only one that uses a folder.
 *
 * The lock is a socket that the holder listens on. The kernel accepts connections to it exactly as long as the holder
 * lives, frozen or not. So a lock is never stale: not through age, a reused pid, another container on the same volume
 * or a power cut. The holder tells whoever connects who it is.
 *
 * A dead lock is never replaced, because another process may have replaced it meanwhile. Instead, locks are numbered:
 * the process that creates the number after a dead one holds the folder, and the last number always stays.
 *
 * @returns a function that unlocks the folder.
 * @throws {FolderHeldError} naming the holder.
 * @throws {Error} if the folder's path is too long for a socket and other users may write to the place used instead.
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

/** @returns undefined if another process was faster. */
async function makeLock(place: string, number: number): Promise<Server | undefined> {
  // Listen before the number exists, so that nobody mistakes the lock for a dead one.
  const nameless = join(place, `lock-${randomBytes(4).toString('hex')}`);
  const server = await listen(nameless);
  const path = lockPath(place, number);
  try {
    chmodSync(nameless, 0o600);
    linkSync(nameless, path);
    // This process may have been suspended, and others may have created and removed this number meanwhile.
    if (latestLock(place) === number) {
      removeOlder(place, number);
      writeFileSync(join(place, HOLDER_FILE), ABOUT, { mode: 0o600 });
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

/** On Windows the lock is a named pipe. Only one process can create it, and it disappears when that process ends. */
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

/** Listens at a path and tells everyone who connects about this process. */
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

/** @returns the folder for the sockets: the folder itself or, if its path is too long, one in the temporary folder. */
function placeOf(folder: string): string {
  if (Buffer.byteLength(join(folder, LONGEST_NAME)) <= MAX_SOCKET_PATH) return folder;
  const place = join(tmpdir(), `plant-store-${digestOf(folder)}`);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  // Anyone can create this folder first, and could then remove the locks in it.
  const stats = lstatSync(place);
  if (!stats.isDirectory() || stats.uid !== process.getuid?.() || (stats.mode & 0o077) !== 0) {
    throw new Error(
      `${folder} cannot be locked: the folder ${place} must be this user's own, with mode 0700. Remove it, or set TMPDIR to a folder of this user.`,
    );
  }
  return place;
}

/** @returns the holder's answer, an empty text if there is none in time, or undefined if nobody listens. */
function askHolder(path: string): Promise<string | undefined> {
  return new Promise((done) => {
    let words = '';
    let isDead = false;
    const socket = connect(path);
    const timer = setTimeout(() => socket.destroy(), ANSWER_MS);
    socket
      .on('data', (data) => (words += data.toString()))
      // Other errors do not mean that the holder is dead: its queue of callers may be full.
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
