import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Contract } from './contract.js';

/** One response of an operation of the contract, for the judge of the whole test run in contract-judge.js. */
export interface RecordedResponse {
  method: string;
  path: string;
  status: number;
  headers: Record<string, string>;
  text: string;
  /** The test file that it was seen in, and how often there. */
  testFile: string;
  times: number;
}

const contract = new Contract(JSON.parse(readFileSync('openapi.json', 'utf8')) as object);
const declaredHeaders = new RegExp(`^(${contract.headers.join('|')}): (.*)\\r$`, 'gim');

/**
 * Notes every response that a service gives to the contract's operations, whatever client it is that asks.
 *
 * @returns a function that hands over what was noted.
 */
export function recordResponses(server: Server): () => void {
  const recorded = new Map<string, RecordedResponse>();

  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const method = request.method?.toLowerCase() ?? '';
    const path = request.url?.split('?')[0] ?? '';
    if (contract.templateOf(method, path) === undefined) return;
    const chunks: Buffer[] = [];
    for (const name of ['write', 'end'] as const) {
      const original = response[name].bind(response) as (...args: unknown[]) => never;
      response[name] = (...args: unknown[]) => {
        if (typeof args[0] === 'string' || args[0] instanceof Uint8Array)
          chunks.push(Buffer.from(args[0] as string));
        return original(...args);
      };
    }
    response.once('finish', () => {
      const { statusCode: status } = response;
      // As they were written: getHeader() does not know of those that went to writeHead() in one list.
      const { _header: head } = response as unknown as { _header: string };
      const headers = Object.fromEntries(
        [...head.matchAll(declaredHeaders)].map(([, name = '', value = '']) => [name.toLowerCase(), value]),
      );
      const text = Buffer.concat(chunks).toString();
      const seen = { method, path, status, headers, text, testFile: expect.getState().testPath ?? '' };
      // One id is as good as another.
      const key = JSON.stringify(seen).replace(/("plant-id":")-?\d+"/, '$1…"');
      recorded.set(key, { ...seen, times: (recorded.get(key)?.times ?? 0) + 1 });
    });
  });

  return () => {
    const lines = [...recorded.values()].map((response) => `${JSON.stringify(response)}\n`);
    appendFileSync(
      join(process.env.PLANT_STORE_TEST_RESPONSES as string, `${randomUUID()}.jsonl`),
      lines.join(''),
    );
  };
}
