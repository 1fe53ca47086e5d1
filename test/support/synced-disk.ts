import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Name {
  name: string;
  key: string;
  isFolder: boolean;
}

/** A disk on which a test can cut the power: it keeps only what a service forced to it with fsync. */
export class SyncedDisk {
  readonly #folder = mkdtempSync(join(tmpdir(), 'plant-store-disk-'));
  /** The folder for the service to write to. Its name is on the disk already. */
  readonly root = join(this.#folder, 'root');
  readonly #kept = join(this.#folder, 'kept');
  #cuts = 0;

  constructor() {
    mkdirSync(this.root);
    mkdirSync(this.#kept);
  }

  /** The variables that make a service use this disk. */
  get env(): Record<string, string> {
    return {
      NODE_OPTIONS: `--import ${pathToFileURL(resolve('test/support/keep-what-is-synced.js')).href}`,
      SYNCED_DISK: this.#kept,
      SYNCED_ROOT: this.root,
    };
  }

  /** Makes each later fsync of the service fail. */
  fail(): void {
    writeFileSync(join(this.#kept, 'failing'), '');
  }

  /**
   * The service must not run meanwhile (SIGSTOP).
   *
   * @returns a copy of the root as a power cut would leave it.
   */
  copyAfterPowerCut(): string {
    const folder = join(this.#folder, `cut-${++this.#cuts}`);
    const { ino, birthtimeNs } = statSync(this.root, { bigint: true });
    this.#restore(folder, `${ino}-${birthtimeNs}`);
    return folder;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #restore(folder: string, key: string): void {
    mkdirSync(folder, { mode: 0o700 });
    const names = join(this.#kept, `${key}.names`);
    if (!existsSync(names)) return;
    for (const { name, key, isFolder } of JSON.parse(readFileSync(names, 'utf8')) as Name[]) {
      const path = join(folder, name);
      if (isFolder) this.#restore(path, key);
      else if (existsSync(join(this.#kept, key))) copyFileSync(join(this.#kept, key), path);
      // A file that was never forced to the disk may be empty there. A socket is useless after the power cut.
      else writeFileSync(path, '');
    }
  }
}
