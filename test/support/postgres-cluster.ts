import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { onServer } from './database.js';
import { childrenOf, freePort, postgresUser, processOf, programPath } from './machine.js';
import { until, untilAnswers } from './patience.js';

const run = promisify(execFile);

/** A PostgreSQL server for one test, which may break it. Its durability is PostgreSQL's default. */
export class PostgresCluster {
  #postmaster: ChildProcess | undefined;
  #frozen: number[] = [];
  #log = '';

  private constructor(
    readonly folder: string,
    readonly port: number,
    private readonly settings: Record<string, string>,
  ) {}

  /** @param folder an empty folder for the cluster; remove() removes it. */
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

  /** Starts the server, after a crash too, and waits until it accepts connections. */
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
    await untilAnswers('PostgreSQL', postmaster, () => this.#answers(), { output: () => this.#log });
  }

  get isRunning(): boolean {
    return this.#postmaster?.exitCode === null && this.#postmaster.signalCode === null;
  }

  /** PostgreSQL's immediate shutdown: all processes end at once, without a checkpoint. */
  async stopAtOnce(): Promise<void> {
    await this.#end('SIGQUIT');
  }

  /** Kills the postmaster, and waits until its child processes notice and end. */
  async kill(): Promise<void> {
    const others = this.#processes();
    await this.#end('SIGKILL');
    await until('the processes of PostgreSQL have ended', () => !others.some(isAlive));
  }

  /** Stops all processes (SIGSTOP): connections stay open, and nothing answers. */
  freeze(): void {
    // Stop the postmaster first, so that it cannot start another process.
    this.#postmaster?.kill('SIGSTOP');
    this.#frozen = this.#processes();
    for (const pid of this.#frozen) signal(pid, 'SIGSTOP');
  }

  thaw(): void {
    for (const pid of this.#frozen.splice(0)) signal(pid, 'SIGCONT');
  }

  /** Runs one statement as the superuser, on a new connection. */
  query<Row>(sql: string, parameters: unknown[] = [], database = 'postgres'): Promise<Row[]> {
    return onServer(this.url(database), sql, parameters) as Promise<Row[]>;
  }

  /** Makes a tablespace in an empty folder, and moves the plants there. */
  async movePlants(folder: string): Promise<void> {
    const { uid, gid } = postgresUser();
    if (uid !== undefined) chownSync(folder, uid, gid as number);
    await this.query(`CREATE TABLESPACE other LOCATION '${folder}'`);
    await this.query('ALTER TABLE plants SET TABLESPACE other', [], 'plants');
    await this.query('ALTER INDEX plants_pkey SET TABLESPACE other', [], 'plants');
  }

  /** @returns a connection of the superuser; the caller ends it. */
  async connect(database = 'postgres'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url(database) });
    // A test may end the server or the connection; without a listener this error would end the test run.
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

  /** The postmaster and its children. */
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

/** A zombie is not alive. */
function isAlive(pid: number): boolean {
  const found = processOf(pid);
  return found !== undefined && found.state !== 'Z';
}
