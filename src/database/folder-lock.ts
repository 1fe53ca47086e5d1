import { createHash } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Another process holds the folder. */
export class FolderHeldError extends Error {
  override name = 'FolderHeldError' as const;
}

/** The longest path that a socket may have everywhere, in bytes (macOS; Linux takes a few more). */
const MAX_SOCKET_PATH = 103;
/** Between taking a dead process's lock over and looking whether another took it over too, in milliseconds. */
const SETTLE_MS = 100;
const ANSWER_MS = 500;

/**
 * Makes this process the only one that uses a folder.
 *
 * The lock is a socket that the holder listens on. The kernel answers for the holder as long as it lives, frozen or not,
 * and stops when it dies, so a lock is never stale by age, by a pid that is used again, or in another container on the
 * same volume. Who connects is told who holds.
 *
 * @returns a function that gives the folder free.
 * @throws {FolderHeldError} naming the holder.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = socketPath(folder);
  const about = `process ${process.pid} on ${hostname()}, since ${new Date().toISOString()}`;
  for (let tookOver = false; ; tookOver = true) {
    const server = createServer((socket) => socket.on('error', () => socket.destroy()).end(about)).unref();
    if (await listens(server, path)) {
      const own = identity(path);
      if (tookOver) await delay(SETTLE_MS);
      if (identity(path) === own) return () => new Promise((done) => server.close(() => done()));
      // Lost to another process that took over at the same moment. Closing would remove that one's socket.
    }
    const found = identity(path);
    const holder = await askHolder(path);
    if (holder !== undefined) throw new FolderHeldError(`${resolve(folder)} is in use by ${holder}`);
    if (identity(path) === found) rmSync(path, { force: true });
  }
}

function socketPath(folder: string): string {
  const path = join(folder, 'lock');
  const digest = createHash('sha256').update(resolve(folder)).digest('hex').slice(0, 32);
  if (process.platform === 'win32') return `\\\\.\\pipe\\plant-store-${digest}`;
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH ? path : join(tmpdir(), `plant-store-${digest}.lock`);
}

function listens(server: Server, path: string): Promise<boolean> {
  return new Promise((done, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? done(false) : fail(error),
    );
    server.listen(path, () => done(true));
  });
}

/** @returns the holder's words, or undefined where nobody listens. */
function askHolder(path: string): Promise<string | undefined> {
  return new Promise((done) => {
    let words = '';
    const socket = connect(path);
    const timer = setTimeout(() => socket.destroy(), ANSWER_MS);
    let connected = false;
    socket
      .on('connect', () => (connected = true))
      .on('data', (data) => (words += data.toString()))
      .on('error', () => undefined)
      .on('close', () => {
        clearTimeout(timer);
        done(connected ? words || 'a process that does not answer' : undefined);
      });
  });
}

/** Tells one socket at a path from the next, which may get the same inode. */
function identity(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat && `${stat.ino}:${stat.ctimeNs}`;
}
