import { spawn, type ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, residentMebibytes } from './machine.js';
import { PATIENCE_MS, until } from './patience.js';
import { TOKEN } from './service.js';

const MAIN = resolve('dist/src/main.js');
const POLL_MS = 20;

/**
 * A module that Node loads before the service. On one signal it tells how much processor time the process has used, with
 * all its threads, in microseconds; on the other it collects garbage and tells how many bytes are left.
 */
const SIGNALS = { cpu: 'SIGPWR', memory: 'SIGUSR2' } as const;
const PROBE = `
  process.on('${SIGNALS.cpu}', () => {
    const { user, system } = process.cpuUsage();
    console.error('cpu ' + (user + system));
  });
  process.on('${SIGNALS.memory}', () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    console.error('memory ' + (heapUsed + external));
  });`;
const NODE_OPTIONS = ['--expose-gc', '--import', `data:text/javascript,${encodeURIComponent(PROBE)}`];

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The built service as a process of its own: `node dist/src/main.js`. */
export class ServiceProcess {
  readonly exit: Promise<Exit>;
  #output = '';

  private constructor(
    readonly child: ChildProcess,
    readonly port: number,
  ) {
    const collect = (data: Buffer) => (this.#output += data.toString());
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    this.exit = new Promise((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal }));
    });
  }

  /**
   * Starts it, and does not wait. It inherits no variable but PATH, and finds no `.env`.
   *
   * @param heapMb bounds V8's heap.
   */
  static async spawn(env: Record<string, string>, port?: number, heapMb?: number): Promise<ServiceProcess> {
    const address = port ?? (await freePort());
    const variables = {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(address),
      ACCESS_TOKENS: TOKEN,
      LOG_LEVEL: 'warn',
      ...env,
    };
    const heap = heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`];
    const child = spawn(process.execPath, [...NODE_OPTIONS, ...heap, MAIN], {
      env: variables,
      cwd: tmpdir(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new ServiceProcess(child, address);
  }

  /** Starts it and waits until it is ready; if it does not become so, it is killed. */
  static async start(env: Record<string, string>, port?: number, heapMb?: number): Promise<ServiceProcess> {
    const service = await ServiceProcess.spawn(env, port, heapMb);
    try {
      await service.ready();
    } catch (error) {
      await service.end('SIGKILL');
      throw error;
    }
    return service;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** What it wrote so far, on both streams. */
  get output(): string {
    return this.#output;
  }

  /** @throws if it ends first, or is not ready in time. */
  async ready(withinMs = PATIENCE_MS): Promise<void> {
    const begun = performance.now();
    while ((await this.probe('ready')) !== 200) {
      const elapsedMs = performance.now() - begun;
      if (!this.isRunning || elapsedMs > withinMs)
        throw new Error(`not ready after ${Math.round(elapsedMs)} ms:\n${this.#output.slice(-4_000)}`);
      await delay(POLL_MS);
    }
  }

  /** The status of a probe; undefined where nothing answers within two seconds. */
  async probe(name: 'live' | 'ready'): Promise<number | undefined> {
    try {
      const url = `http://127.0.0.1:${this.port}/health/${name}`;
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return undefined;
    }
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals): Promise<Exit> {
    this.child.kill(signal);
    return this.exit;
  }

  /** What is in use of its memory after a full garbage collection, in MiB. */
  async memory(): Promise<number> {
    return (await this.#tell('memory')) / 1024 / 1024;
  }

  /** The processor time that it has used, in milliseconds; what else the machine does is not in it. */
  async cpuMs(): Promise<number> {
    return (await this.#tell('cpu')) / 1_000;
  }

  async #tell(what: keyof typeof SIGNALS): Promise<number> {
    const before = this.#output.length;
    const told = () => new RegExp(`^${what} (\\d+)$`, 'm').exec(this.#output.slice(before))?.[1];
    this.child.kill(SIGNALS[what]);
    await until(`the service tells its ${what}`, () => told() !== undefined);
    return Number(told());
  }

  /** All of its memory that is in RAM, garbage included, in MB. */
  residentMemory(): number {
    return residentMebibytes(this.pid);
  }
}
