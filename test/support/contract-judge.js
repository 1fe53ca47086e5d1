import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHttpOperationsFromSpec } from '@stoplight/prism-http/dist/utils/operations.js';
import { validateOutput } from '@stoplight/prism-http/dist/validator/index.js';

const VIOLATIONS_SHOWN = 20;

/**
 * Lets Stoplight Prism, which knows nothing but openapi.json, judge every response that the tests got from the
 * contract's operations (see recorded-responses.ts), and fails the run where one is outside the document.
 */
export default class ContractJudge {
  #error;

  async onRunComplete() {
    const folder = process.env.PLANT_STORE_TEST_RESPONSES;
    const responses = readdirSync(folder).flatMap((file) =>
      readFileSync(join(folder, file), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    );
    if (responses.length === 0) return;
    const judge = await createJudge();
    const outside = responses.flatMap((response) =>
      judge(response).map(
        (violation) => `${violation}\n  ${response.status} ${response.text}\n  in ${response.testFile}`,
      ),
    );
    const total = responses.reduce((sum, { times }) => sum + times, 0);
    const verdict = `Prism judged ${total} responses (${responses.length} different): ${outside.length} outside openapi.json`;
    process.stderr.write(`${[verdict, ...outside.slice(0, VIOLATIONS_SHOWN)].join('\n')}\n`);
    if (outside.length > 0) this.#error = new Error(verdict);
  }

  getLastError() {
    return this.#error;
  }
}

/**
 * @returns a function that says what is wrong with a response: nothing, where the document allows it. A status that the
 *   document does not declare is wrong too, for which Prism's proxy has a warning only.
 */
export async function createJudge() {
  const operations = await getHttpOperationsFromSpec('openapi.json');
  return ({ method, path, status, headers, text }) => {
    const resource = operations.find((operation) => operation.method === method && operation.path === path);
    if (resource === undefined) return [`${method} ${path} is no operation`];
    const body = text === '' ? undefined : JSON.parse(text);
    const verdict = validateOutput({ resource, element: { statusCode: status, headers, body } });
    return verdict._tag === 'Left' ? verdict.left.map(({ message }) => message) : [];
  };
}
