import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onServer } from './database.js';
import { freePort, programPath } from './machine.js';
import { untilAnswers } from './patience.js';

/** PgBouncer in transaction mode: each transaction of a client may run in another session of the server. */
export class PgBouncer {
  private constructor(
    private readonly server: URL,
    private readonly port: number,
    private readonly folder: string,
    private readonly process: ChildProcess,
  ) {}

  /** @param serverUrl the server behind it, with a user and any database. */
  static async start(serverUrl: string): Promise<PgBouncer> {
    const server = new URL(serverUrl);
    const folder = mkdtempSync(join(tmpdir(), 'plant-store-pgbouncer-'));
    const port = await freePort();
    const password = server.password === '' ? '' : ` password=${server.password}`;
    const settings = [
      '[databases]',
      `* = host=${server.hostname} port=${server.port || '5432'} user=${server.username}${password}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'max_client_conn = 500',
    ];
    writeFileSync(join(folder, 'pgbouncer.ini'), settings.join('\n'));
    // It refuses to run as root.
    const user = process.getuid?.() === 0 ? ['--user=postgres'] : [];
    const args = ['--quiet', ...user, join(folder, 'pgbouncer.ini')];
    const child = spawn(programPath('pgbouncer') as string, args, {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const bouncer = new PgBouncer(server, port, folder, child);
    await untilAnswers('PgBouncer', child, () => bouncer.#answers(), { stop: () => bouncer.stop() });
    return bouncer;
  }

  url(database: string): string {
    return `postgres://${this.server.username}@127.0.0.1:${this.port}/${database}`;
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exit = once(this.process, 'exit');
      this.process.kill('SIGKILL');
      await exit;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    return onServer(this.url(this.server.pathname.slice(1)), 'SELECT 1').then(
      () => true,
      () => false,
    );
  }
}
