import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Contract } from './contract.js';

/** One response of an operation of the contract. contract-judge.js checks them at the end of the test run. */
interface RecordedResponse {
  method: string;
  path: string;
  status: number;
  headers: Record<string, string>;
  text: string;
  /** The test file that got this response, and how often. */
  testFile: string;
  times: number;
}

const contract = new Contract(JSON.parse(readFileSync('openapi.json', 'utf8')) as object);
const declaredHeaders = new RegExp(`^(${contract.headers.join('|')}): (.*)\\r$`, 'gim');

/**
 * Records every response of a service to the operations of the contract.
 *
 * @returns a function that writes the records to a file.
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
      // Read the head as it was sent, because getHeader() lacks headers that were passed to writeHead() as a list.
      const { _header: head } = response as unknown as { _header: string };
      const headers = Object.fromEntries(
        [...head.matchAll(declaredHeaders)].map(([, name = '', value = '']) => [name.toLowerCase(), value]),
      );
      const text = Buffer.concat(chunks).toString();
      const seen = { method, path, status, headers, text, testFile: expect.getState().testPath ?? '' };
      // Responses that differ in the id only count as the same.
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
