import type { OpenAPIObject } from '@nestjs/swagger';

/** The members of OpenAPI's Path Item Object that are operations. */
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;

/** @returns every operation of a document with its path template and its method in lower case. */
export function operationsOf(document: OpenAPIObject) {
  return Object.entries(document.paths).flatMap(([template, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ template, method, operation }];
    }),
  );
}

/** Finds the operations of a document by their requests. */
export class Operations {
  readonly #operations: { method: string; path: RegExp; statuses: ReadonlySet<number> }[];

  constructor(document: OpenAPIObject) {
    this.#operations = operationsOf(document).map(({ template, method, operation }) => ({
      method: method.toUpperCase(),
      path: patternOf(template),
      statuses: new Set(Object.keys(operation.responses).map(Number)),
    }));
  }

  /** The methods of all operations, in upper case. */
  get methods(): string[] {
    return [...new Set(this.#operations.map(({ method }) => method))];
  }

  /**
   * An operation only answers with statuses that it declares. A fault of the request for which it declares none is 400;
   * the body's `error` then tells which fault it is.
   *
   * @param target the request's path, with or without a query.
   * @param error the number of a failure.
   * @returns the HTTP status of its response.
   */
  statusOf(method: string | undefined, target: string | undefined, error: number): number {
    if (error >= 500 || method === undefined || target === undefined) return error;
    const end = target.indexOf('?');
    const path = end < 0 ? target : target.slice(0, end);
    const operation = this.#operations.find((known) => known.method === method && known.path.test(path));
    return operation === undefined || operation.statuses.has(error) ? error : 400;
  }
}

/** @returns the pattern of a path template (OpenAPI 3.1, section 4.8.8), whose `{name}` is anything without a slash. */
function patternOf(template: string): RegExp {
  const parts = template.split(/\{[^{}]*\}/).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}$`);
}
