import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

/** PGlite is durable with these options, without `-F`, and with a file system that has fsync. */
export const DURABLE_START_PARAMETERS = [
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  // The default here is fdatasync, which does nothing in PGlite.
  '-c',
  'wal_sync_method=fsync',
];

/** The mask that leaves a mode its file type and the owner's rights. */
const OWNER_ONLY = ~0o077;

/** The part of Emscripten's Node.js file system that is changed here. */
interface NodeFilesystem {
  tryFSOperation: (operation: () => void) => void;
  stream_ops: { fsync?: (stream: { nfd: number }) => number };
  node_ops: {
    mknod: (parent: unknown, name: string, mode: number, device: number) => unknown;
    setattr: (node: unknown, attributes: { mode?: number }) => void;
  };
}

/**
 * PGlite's files in a folder. PGlite's own class ignores fsync; this one forces the data to the disk. Only the owner
 * can use the files that it creates: PostgreSQL's umask is not the process's.
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
        // PostgreSQL gets the error as an errno and panics.
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

/** Forces a folder's list of files to the disk, but not their content. */
export function syncFolder(folder: string): void {
  // Windows cannot open a folder; NTFS has a journal for names.
  if (process.platform !== 'win32') syncPath(folder, 'r');
}

/**
 * Creates a folder and its missing parents, for their owner alone, and forces their names to the disk.
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

/** Lets only the owner use a folder and all that is in it, and forces it to the disk. */
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
