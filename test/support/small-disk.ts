import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BALLAST = 'ballast';

/** A small disk in memory (tmpfs) that a test can fill. Only root may mount it. */
export class SmallDisk {
  readonly folder = mkdtempSync(join(tmpdir(), 'plant-store-disk-'));

  constructor(megabytes: number) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.folder]);
  }

  makeFolder(): string {
    return mkdtempSync(join(this.folder, 'folder-'));
  }

  /** @param freeBytes how many bytes stay free. */
  fill(freeBytes: number): void {
    const { bavail, bsize } = statfsSync(this.folder);
    writeFileSync(join(this.folder, BALLAST), Buffer.alloc(Math.max(0, bavail * bsize - freeBytes)));
  }

  makeRoom(): void {
    rmSync(join(this.folder, BALLAST));
  }

  remove(): void {
    execFileSync('umount', [this.folder]);
    rmdirSync(this.folder);
  }
}
