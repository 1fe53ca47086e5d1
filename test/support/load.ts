import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from './patience.js';
import { TOKEN } from './service.js';

const PAUSE_AFTER_FAILURE_MS = 50;
/** Longer than a busy service takes, whose own limit is DATABASE_TIMEOUT_MS. */
const CLIENT_TIMEOUT_MS = 60_000;

interface Answered {
  status: number;
  retryAfter: string | undefined;
  text: string;
}

/**
 * Creates plants over keep-alive connections and remembers the answer to each. Plant n has the id n and the name
 * `plant n`, so the stored rows can be checked.
 */
export class Load {
  /** Answered 200. */
  readonly acknowledged = new Set<number>();
  /** Not acknowledged: answered 503, or not at all. */
  readonly open = new Set<number>();
  unavailable = 0;
  unanswered = 0;
  /** Answers that are neither 200 with the plant nor 503 with Retry-After. */
  readonly wrong: string[] = [];
  slowestUnavailableMs = 0;
  slowestAcknowledgedMs = 0;
  #running = false;
  #workers: Promise<void>[] = [];

  constructor(
    private readonly port: number,
    private nextId = 1,
  ) {}

  /** @param connections each sends one request at a time, and pauses after one that failed. */
  start(connections: number): void {
    this.#running = true;
    this.#workers = Array.from({ length: connections }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (this.#running) {
        const isStored = await this.create(this.nextId++, agent);
        if (!isStored) await delay(PAUSE_AFTER_FAILURE_MS);
      }
      agent.destroy();
    });
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  /** Waits until this many more creates are acknowledged. */
  async more(creates: number): Promise<void> {
    const wanted = this.acknowledged.size + creates;
    await until(`${creates} more creates are acknowledged`, () => this.acknowledged.size >= wanted);
  }

  async during(milliseconds: number, connections: number): Promise<void> {
    this.start(connections);
    await delay(milliseconds);
    await this.stop();
  }

  /** Sends creates at a steady rate, without waiting for earlier answers; then waits for every answer. */
  async offer(perSecond: number, milliseconds: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
    const begun = performance.now();
    const answers: Promise<boolean>[] = [];
    for (let elapsed = 0; elapsed < milliseconds; elapsed = performance.now() - begun) {
      const due = (elapsed * perSecond) / 1_000;
      while (answers.length < due) answers.push(this.create(this.nextId++, agent));
      await delay(5);
    }
    await Promise.all(answers);
    agent.destroy();
  }

  /** Sends each plant again that was not acknowledged. An answer other than 200 counts as wrong. */
  async retry(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const answers = [...this.open].map(async (id) => {
      const answer = await send(this.port, id, agent);
      if (answer?.status !== 200) this.wrong.push(`retry of ${id}: ${describe(answer)}`);
      else this.#acknowledge(id);
    });
    await Promise.all(answers);
    agent.destroy();
  }

  /** @returns whether the service acknowledged the plant. */
  async create(id: number, agent?: Agent): Promise<boolean> {
    this.open.add(id);
    const begun = performance.now();
    const answer = await send(this.port, id, agent);
    const elapsed = performance.now() - begun;
    if (answer === undefined) {
      this.unanswered++;
      return false;
    }
    if (answer.status === 503 && answer.retryAfter !== undefined) {
      this.unavailable++;
      this.slowestUnavailableMs = Math.max(this.slowestUnavailableMs, elapsed);
      return false;
    }
    if (answer.status !== 200 || answer.text !== `{"name":"plant ${id}"}`) {
      this.wrong.push(describe(answer));
      return false;
    }
    this.slowestAcknowledgedMs = Math.max(this.slowestAcknowledgedMs, elapsed);
    this.#acknowledge(id);
    return true;
  }

  /** @returns the ids of acknowledged plants that are not stored as they were sent. */
  async lost(query: (sql: string) => Promise<{ id: string }[]>): Promise<number[]> {
    const rows = await query(`SELECT id FROM plants WHERE name = 'plant ' || id AND tag IS NULL`);
    const stored = new Set(rows.map(({ id }) => Number(id)));
    return [...this.acknowledged].filter((id) => !stored.has(id));
  }

  #acknowledge(id: number): void {
    this.open.delete(id);
    this.acknowledged.add(id);
  }
}

function describe(answer: Answered | undefined): string {
  return answer === undefined ? 'no answer' : `${answer.status} ${answer.text}`;
}

/** Sends one create. @returns undefined if the connection ends without an answer. */
function send(port: number, id: number, agent: Agent | undefined): Promise<Answered | undefined> {
  const body = `{"id":${id},"name":"plant ${id}"}`;
  const headers = {
    Authorization: `Bearer ${TOKEN}`,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  };
  return new Promise((resolve) => {
    const call = request({ port, host: '127.0.0.1', method: 'POST', path: '/plants', agent, headers });
    call.setTimeout(CLIENT_TIMEOUT_MS, () => {
      call.destroy();
    });
    call.on('error', () => resolve(undefined));
    call.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () =>
        resolve({ status: response.statusCode as number, retryAfter: response.headers['retry-after'], text }),
      );
      response.on('error', () => resolve(undefined));
      response.on('aborted', () => resolve(undefined));
    });
    call.end(body);
  });
}
