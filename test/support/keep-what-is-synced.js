// Loaded into a service before it starts (`--import`). Keeps in the folder SYNCED_DISK what a disk is certain to have of
// everything under SYNCED_ROOT: the content of a file, and the names in a folder, at the last fsync of each.
// While the file SYNCED_DISK/failing exists, each fsync fails as on a broken disk. synced-disk.ts reads SYNCED_DISK.
import { Buffer } from 'node:buffer';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join, resolve } from 'node:path';

const DISK = process.env.SYNCED_DISK;
const ROOT = process.env.SYNCED_ROOT;
const real = { ...fs };
/** The open files by descriptor: `{ path, key, isFolder }`. */
const opened = new Map();
/** By key, the pieces of a file that were written since its last fsync. Without an entry, the whole file is copied. */
const written = new Map();

/** An inode number is reused; together with the birth time it is unique. */
const keyOf = ({ ino, birthtimeNs }) => `${ino}-${birthtimeNs}`;
const stat = (path) => real.lstatSync(path, { bigint: true });

fs.openSync = (path, flags, mode) => {
  const descriptor = real.openSync(path, flags, mode);
  const absolute = resolve(String(path));
  if (absolute === ROOT || absolute.startsWith(`${ROOT}/`)) {
    const stats = real.fstatSync(descriptor, { bigint: true });
    const key = keyOf(stats);
    opened.set(descriptor, { path: absolute, key, isFolder: stats.isDirectory() });
    if (flags === 'w' || (Number(flags) & fs.constants.O_TRUNC) !== 0) written.delete(key);
  }
  return descriptor;
};

fs.closeSync = (descriptor) => {
  opened.delete(descriptor);
  real.closeSync(descriptor);
};

fs.writeSync = (descriptor, buffer, offset, length, position) => {
  const count = real.writeSync(descriptor, buffer, offset, length, position);
  written.get(opened.get(descriptor)?.key)?.push({ position, count });
  return count;
};

fs.ftruncateSync = (descriptor, length) => {
  written.delete(opened.get(descriptor)?.key);
  real.ftruncateSync(descriptor, length);
};

fs.truncateSync = (path, length) => {
  written.delete(keyOf(stat(path)));
  real.truncateSync(path, length);
};

fs.fsyncSync = (descriptor) => {
  const file = opened.get(descriptor);
  if (file !== undefined) {
    if (real.existsSync(join(DISK, 'failing')))
      throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' });
    if (file.isFolder) keepNames(file);
    else keepContent(file, descriptor);
  }
  real.fsyncSync(descriptor);
};

function keepNames({ path, key }) {
  const names = real.readdirSync(path, { withFileTypes: true }).map((entry) => ({
    name: entry.name,
    key: keyOf(stat(join(path, entry.name))),
    isFolder: entry.isDirectory(),
  }));
  real.writeFileSync(join(DISK, `${key}.new`), JSON.stringify(names));
  real.renameSync(join(DISK, `${key}.new`), join(DISK, `${key}.names`));
}

function keepContent({ path, key }, descriptor) {
  const kept = join(DISK, key);
  const pieces = written.get(key);
  if (pieces === undefined) real.copyFileSync(path, kept);
  else {
    const copy = real.openSync(kept, 'r+');
    for (const { position, count } of pieces) {
      const piece = Buffer.alloc(count);
      real.readSync(descriptor, piece, 0, count, position);
      real.writeSync(copy, piece, 0, count, position);
    }
    real.closeSync(copy);
  }
  written.set(key, []);
}

syncBuiltinESMExports();
