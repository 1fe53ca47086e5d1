import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

/** How PGlite is made durable: with these options, without `-F`, and on a file system that has an fsync. */
export const DURABLE_START_PARAMETERS = [
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  // PostgreSQL's default here is fdatasync, which PGlite answers without doing anything.
  '-c',
  'wal_sync_method=fsync',
];

/** What a mode keeps: its type, and the rights of the owner. */
const OWNER_ONLY = ~0o077;

/** The part of Emscripten's Node file system that is changed here. */
interface NodeFilesystem {
  tryFSOperation: (operation: () => void) => void;
  stream_ops: { fsync?: (stream: { nfd: number }) => number };
  node_ops: {
    mknod: (parent: unknown, name: string, mode: number, device: number) => unknown;
    setattr: (node: unknown, attributes: { mode?: number }) => void;
  };
}

/**
 * PGlite's files in a folder. PGlite's own class ignores fsync; this one forces to the disk what PostgreSQL asks for. What
 * it makes is for its owner alone: PostgreSQL's umask is not the process's.
 */
export class DurableNodeFS extends NodeFS {
  override async init(...[pglite, options]: Parameters<NodeFS['init']>): ReturnType<NodeFS['init']> {
    const { emscriptenOpts } = await super.init(pglite, options);
    emscriptenOpts.preRun?.push(({ NODEFS }) => {
      const {
        tryFSOperation: convertErrors,
        stream_ops: streams,
        node_ops: nodes,
      } = NODEFS as unknown as NodeFilesystem;
      streams.fsync = ({ nfd }) => {
        // PostgreSQL sees the error as an errno, and panics.
        convertErrors(() => fsyncSync(nfd));
        return 0;
      };
      const { mknod, setattr } = nodes;
      nodes.mknod = (parent, name, mode, device) => mknod(parent, name, mode & OWNER_ONLY, device);
      nodes.setattr = (node, attributes) => {
        if (attributes.mode !== undefined) attributes.mode &= OWNER_ONLY;
        setattr(node, attributes);
      };
    });
    return { emscriptenOpts };
  }
}

/** Forces a folder's list of names to the disk: which files it has, not what is in them. */
export function syncFolder(folder: string): void {
  // Windows opens no folders; NTFS has a journal for names.
  if (process.platform !== 'win32') syncPath(folder, 'r');
}

/**
 * Makes a folder and those above it, for their owner alone.
 *
 * @returns when all their names are on the disk.
 */
export function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  const above = dirname(resolve(first));
  for (let path = resolve(folder); path !== above;) {
    path = dirname(path);
    syncFolder(path);
  }
}

/** Takes a folder and all that is in it away from every user but its owner, and forces it to the disk. */
export function closeAndSyncTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) closeAndSyncTree(path);
    else if (entry.isFile()) {
      chmodSync(path, 0o600);
      syncPath(path, 'r+');
    }
  }
  chmodSync(folder, 0o700);
  syncFolder(folder);
}

function syncPath(path: string, flags: 'r' | 'r+'): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
