import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { onServer } from './database.js';
import { childrenOf, freePort, postgresUser, processOf, programPath } from './machine.js';
import { PATIENCE_MS, until } from './patience.js';

const run = promisify(execFile);

/** A PostgreSQL server of the test's own, with PostgreSQL's default durability: one that it may break. */
export class PostgresCluster {
  #postmaster: ChildProcess | undefined;
  #frozen: number[] = [];
  #log = '';

  private constructor(
    readonly folder: string,
    readonly port: number,
    private readonly settings: Record<string, string>,
  ) {}

  /** @param folder an empty one to use, which the end of the server removes. */
  static async start(
    settings: Record<string, string> = {},
    folder = mkdtempSync(join(tmpdir(), 'plant-store-postgres-')),
  ): Promise<PostgresCluster> {
    const user = postgresUser();
    if (user.uid !== undefined) chownSync(folder, user.uid, user.gid as number);
    const initdb = [
      '--pgdata',
      folder,
      '--username',
      'plant',
      '--auth',
      'trust',
      '--no-sync',
      '--wal-segsize',
      '1',
    ];
    await run(programPath('initdb') as string, initdb, { ...user, cwd: folder });
    const cluster = new PostgresCluster(folder, await freePort(), settings);
    try {
      await cluster.start();
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  url(database = 'postgres', user = 'plant'): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** Starts it, after a crash too, and waits until it takes connections. */
  async start(): Promise<void> {
    const settings = {
      port: String(this.port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      ...this.settings,
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const postmaster = spawn(programPath('postgres') as string, ['-D', this.folder, ...args], {
      ...postgresUser(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    postmaster.stderr.on('data', (data: Buffer) => (this.#log += data.toString()));
    this.#postmaster = postmaster;
    const begun = performance.now();
    while (!(await this.#answers())) {
      if (!this.isRunning || performance.now() - begun > PATIENCE_MS) {
        throw new Error(`PostgreSQL did not start:\n${this.#log.slice(-2_000)}`);
      }
      await delay(50);
    }
  }

  get isRunning(): boolean {
    return this.#postmaster?.exitCode === null && this.#postmaster.signalCode === null;
  }

  /** What PostgreSQL calls an immediate shutdown: every process of it ends at once, without a checkpoint. */
  async stopAtOnce(): Promise<void> {
    await this.#end('SIGQUIT');
  }

  /** Kills the postmaster; its processes notice by themselves, and end. */
  async kill(): Promise<void> {
    const others = this.#processes();
    await this.#end('SIGKILL');
    await until('the processes of PostgreSQL have ended', () => !others.some(isAlive));
  }

  /** Stops all of its processes where they are (SIGSTOP): connections stay, and nothing answers. */
  freeze(): void {
    // The postmaster first: it must not make another process meanwhile.
    this.#postmaster?.kill('SIGSTOP');
    this.#frozen = this.#processes();
    for (const pid of this.#frozen) signal(pid, 'SIGSTOP');
  }

  thaw(): void {
    for (const pid of this.#frozen.splice(0)) signal(pid, 'SIGCONT');
  }

  /** Runs one statement as the superuser, on a connection of its own. */
  query<Row>(sql: string, parameters: unknown[] = [], database = 'postgres'): Promise<Row[]> {
    return onServer(this.url(database), sql, parameters) as Promise<Row[]>;
  }

  /** Makes a tablespace of its own in an empty folder, and moves the plants there. */
  async movePlants(folder: string): Promise<void> {
    const { uid, gid } = postgresUser();
    if (uid !== undefined) chownSync(folder, uid, gid as number);
    await this.query(`CREATE TABLESPACE other LOCATION '${folder}'`);
    await this.query('ALTER TABLE plants SET TABLESPACE other', [], 'plants');
    await this.query('ALTER INDEX plants_pkey SET TABLESPACE other', [], 'plants');
  }

  /** A connection of the superuser, to be ended by the caller. */
  async connect(database = 'postgres'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url(database) });
    // The test may end the server, or the connection, from the other side.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  async remove(): Promise<void> {
    if (this.isRunning) {
      this.thaw();
      await this.stopAtOnce();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    try {
      await this.query('SELECT 1');
      return true;
    } catch {
      return false;
    }
  }

  /** The postmaster, which makes the others, and they. */
  #processes(): number[] {
    const postmaster = this.#postmaster?.pid as number;
    return [postmaster, ...childrenOf(postmaster)];
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const postmaster = this.#postmaster as ChildProcess;
    if (!this.isRunning) return;
    const exit = once(postmaster, 'exit');
    postmaster.kill(signal);
    await exit;
  }
}

/** Sends a signal to a process, which may have ended by itself. */
function signal(pid: number, name: NodeJS.Signals): void {
  if (isAlive(pid)) process.kill(pid, name);
}

/** A process that ended and that nobody asked about yet is not. */
function isAlive(pid: number): boolean {
  const found = processOf(pid);
  return found !== undefined && found.state !== 'Z';
}
