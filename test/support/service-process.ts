import { spawn, type ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, residentMebibytes } from './machine.js';
import { PATIENCE_MS, until } from './patience.js';
import { TOKEN } from './service.js';

const MAIN = resolve('dist/main.js');
const POLL_MS = 20;

/**
 * Code that Node.js runs before the service. On one signal it prints the processor time of the process with all its
 * threads, in microseconds. On the other it collects garbage and prints the memory in use, in bytes.
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

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The built service in a process: `node dist/main.js`. */
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
   * Starts the service and does not wait until it is ready. It inherits only PATH, and finds no `.env`.
   *
   * @param heapMb the limit of V8's old generation, in MiB.
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

  /** Starts the service and waits until it is ready. @throws if it does not become ready; it is killed then. */
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

  /** What the service wrote so far to standard output and standard error. */
  get output(): string {
    return this.#output;
  }

  /** Waits until the service is ready. @throws if it ends first, or is not ready in time. */
  async ready(withinMs = PATIENCE_MS): Promise<void> {
    const begun = performance.now();
    while ((await this.probe('ready')) !== 200) {
      const elapsedMs = performance.now() - begun;
      if (!this.isRunning || elapsedMs > withinMs)
        throw new Error(`not ready after ${Math.round(elapsedMs)} ms:\n${this.#output.slice(-4_000)}`);
      await delay(POLL_MS);
    }
  }

  /** @returns the status of a probe; undefined if there is no answer. */
  async probe(name: 'live' | 'ready'): Promise<number | undefined> {
    try {
      const url = `http://127.0.0.1:${this.port}/health/${name}`;
      const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return undefined;
    }
  }

  /** Sends a signal and waits until the process ends. */
  async end(signal: NodeJS.Signals): Promise<Exit> {
    this.child.kill(signal);
    return this.exit;
  }

  /** @returns the memory in use after a full garbage collection, in MiB. */
  async memory(): Promise<number> {
    return (await this.#ask('memory')) / 1024 / 1024;
  }

  /** @returns the processor time that the service has used, in milliseconds. */
  async cpuMs(): Promise<number> {
    return (await this.#ask('cpu')) / 1_000;
  }

  async #ask(what: keyof typeof SIGNALS): Promise<number> {
    const before = this.#output.length;
    const printed = () => new RegExp(`^${what} (\\d+)$`, 'm').exec(this.#output.slice(before))?.[1];
    this.child.kill(SIGNALS[what]);
    await until(`the service prints its ${what}`, () => printed() !== undefined);
    return Number(printed());
  }

  /** @returns the resident memory of the service, garbage included, in MiB. */
  residentMemory(): number {
    return residentMebibytes(this.pid);
  }
}
