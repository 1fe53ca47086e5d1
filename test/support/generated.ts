import { Agent, request } from 'node:http';
import fc from 'fast-check';
import { writeObject, type Said } from './generated-bodies.js';
import { expectError, type Answer } from './requests.js';
import { countRows, rowOf, TOKEN, type TestService } from './service.js';

/** Sends generated requests and checks the answers and the rows. It remembers which plants must be stored. */
export class GeneratedRequests {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #stored = new Map<bigint, Plant>();
  #connections = 0;

  constructor(private readonly service: TestService) {}

  close(): void {
    this.#agent.destroy();
  }

  /** Expects a valid plant to be answered with its own name and tag, and to be stored as it was sent. */
  isStored(said: Said): Promise<void> {
    return this.#orStartAnew(() => this.#isStored(said));
  }

  /** Expects an invalid body to be refused, and nothing to be stored. */
  isRefused(body: Buffer): Promise<void> {
    return this.#orStartAnew(() => this.#isRefused(body));
  }

  /** Expects any body to be either refused, or stored with the values that JSON.parse reads. */
  isEither(body: Buffer): Promise<void> {
    return this.#orStartAnew(() => this.#isEither(body));
  }

  /** Clears the table after a failure. Otherwise its row could fail the next value, and mislead the shrinking. */
  async #orStartAnew(holds: () => Promise<void>): Promise<void> {
    try {
      await holds();
    } catch (error) {
      await this.service.sql('DELETE FROM plants');
      this.#stored.clear();
      throw error;
    }
  }

  async #isStored(said: Said): Promise<void> {
    const { plant } = said;
    const body = writeObject(said);
    const earlier = this.#stored.get(plant.id);
    if (earlier !== undefined && !(earlier.name === plant.name && earlier.tag === plant.tag)) {
      expectError(await this.#post(body), 400, 409);
      await this.#expectRow(earlier);
      await this.service.sql('DELETE FROM plants WHERE id = $1', [plant.id.toString()]);
    }
    const { status, json } = await this.#post(body);
    expect({ status, json }).toEqual({ status: 200, json: answerFor(plant) });
    this.#stored.set(plant.id, plant);
    await this.#expectRow(plant);
  }

  async #isRefused(body: Buffer): Promise<void> {
    const answer = await this.#post(body);
    expectError(answer, 400, errorOf(answer) === 422 ? 422 : 400);
    expect(await countRows(this.service)).toBe(this.#stored.size);
  }

  async #isEither(body: Buffer): Promise<void> {
    const answer = await this.#post(body);
    if (answer.status !== 200) {
      expectError(answer, 400, [409, 422].find((error) => error === errorOf(answer)) ?? 400);
    } else {
      const { name, tag } = JSON.parse(body.toString().replace(/^\uFEFF/, '')) as Plant;
      expect(answer.json).toEqual(answerFor({ name, tag }));
      const newest = 'SELECT id FROM plants ORDER BY created_at DESC LIMIT 1';
      const [row] = await this.service.sql<{ id: string }>(newest);
      const plant = { id: BigInt(row?.id ?? 0), name, tag };
      if (!this.#stored.has(plant.id)) this.#stored.set(plant.id, plant);
      await this.#expectRow(this.#stored.get(plant.id) as Plant);
    }
    expect(await countRows(this.service)).toBe(this.#stored.size);
  }

  async #expectRow({ id, name, tag }: Plant): Promise<void> {
    expect(await rowOf(this.service, id)).toEqual({ id: id.toString(), name, tag: tag ?? null });
  }

  /** Sends every request on one connection, and expects it to stay open. */
  async #post(body: string | Buffer): Promise<Answer> {
    const bytes = Buffer.from(body as string);
    const answer = await new Promise<Answer>((resolve, reject) => {
      const headers = {
        Authorization: `Bearer ${TOKEN}`,
        'Content-Type': 'application/json',
        'Content-Length': bytes.length,
      };
      const sent = request(
        { port: this.service.port, path: '/plants', method: 'POST', agent: this.#agent, headers },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers as Record<string, string>,
              text,
              json: JSON.parse(text) as unknown,
            });
          });
        },
      );
      sent.on('socket', () => sent.reusedSocket || this.#connections++).on('error', reject);
      sent.end(bytes);
    });
    expect(this.#connections).toBe(1);
    return answer;
  }
}

type Plant = Said['plant'];

const errorOf = ({ json }: Answer) => (json as { error?: unknown }).error;

const answerFor = ({ name, tag }: Omit<Plant, 'id'>) => (tag === undefined ? { name } : { name, tag });

/**
 * Tries generated values, prints the seed, and shrinks a failing value to the smallest that still fails.
 * FUZZ_SEED repeats a run.
 *
 * @param onRun is called before each value, with the number of values before it.
 */
export async function forAll<T>(
  title: string,
  arbitrary: fc.Arbitrary<T>,
  runs: number,
  holds: (value: T) => Promise<void>,
  onRun: (run: number) => void = () => undefined,
): Promise<void> {
  const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
  process.stdout.write(`${title}: ${runs} generated with seed ${seed}\n`);
  let run = 0;
  const property = fc.asyncProperty(arbitrary, async (value) => {
    onRun(run++);
    await holds(value);
  });
  await fc.assert(property, { seed, numRuns: runs });
}
