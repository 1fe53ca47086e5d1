import { spawn, type ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, residentMebibytes } from './machine.js';
import { TOKEN } from './service.js';

const MAIN = resolve('dist/src/main.js');
const READY_MS = 60_000;
const POLL_MS = 25;

/** A module that Node loads before the service: on the signal it collects garbage and tells what is left. */
const MEMORY_SIGNAL = 'SIGUSR2';
const MEMORY_MODULE = `process.on('${MEMORY_SIGNAL}', () => {
  gc();
  const { heapUsed, external } = process.memoryUsage();
  console.error('memory ' + (heapUsed + external));
})`;
const NODE_OPTIONS = ['--expose-gc', '--import', `data:text/javascript,${encodeURIComponent(MEMORY_MODULE)}`];

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

  /** Starts it and waits until it is ready. */
  static async start(env: Record<string, string>, port?: number, heapMb?: number): Promise<ServiceProcess> {
    const service = await ServiceProcess.spawn(env, port, heapMb);
    await service.ready();
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

  /** @throws where it ends first, or is not ready in time. */
  async ready(withinMs = READY_MS): Promise<void> {
    const begun = Date.now();
    while ((await this.probe('ready')) !== 200) {
      if (!this.isRunning || Date.now() - begun > withinMs) {
        throw new Error(`not ready after ${Date.now() - begun} ms:\n${this.#output.slice(-4_000)}`);
      }
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

  /** What is in use of its memory after a full garbage collection, in MB. */
  async memory(): Promise<number> {
    const before = this.#output.length;
    this.child.kill(MEMORY_SIGNAL);
    for (;;) {
      const told = /^memory (\d+)$/m.exec(this.#output.slice(before))?.[1];
      if (told !== undefined) return Number(told) / 1024 / 1024;
      await delay(POLL_MS);
    }
  }

  /** All of its memory that is in RAM, garbage included, in MB. */
  residentMemory(): number {
    return residentMebibytes(this.pid);
  }
}
