export interface Example {
  /** The values of the path parameters, by name. */
  parameters?: Readonly<Record<string, number | string>>;
  /** The body. */
  request?: object;
  /** By status. */
  responses: Record<string, object>;
}

/**
 * Examples of each operation's request and responses, by operationId. The contract and so the served document have
 * none: these are for people and tools. A test sends every example, in this order to an empty store.
 */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  createPlant: {
    request: { id: 1, name: 'Monstera', tag: 'indoor' },
    responses: {
      200: { name: 'Monstera', tag: 'indoor' },
      400: { error: 409, message: 'id is taken by another plant, with another name or tag.' },
      401: { error: 401, message: 'A bearer token is needed, in the Authorization header.' },
      503: { error: 503, message: 'The store cannot be reached; the same request may be sent again.' },
    },
  },
};

interface Document {
  paths: Record<string, Record<string, Operation>>;
}

interface Operation {
  operationId?: string;
  parameters?: { name: string; example?: unknown }[];
  requestBody?: Content;
  responses?: Record<string, Content>;
}

interface Content {
  content?: Record<string, { example?: unknown }>;
}

/**
 * @returns a copy of the document with the examples. The function uses nothing outside itself, since it is also sent to
 *   Swagger UI's page.
 */
export function withExamples<T>(document: T, examples: Readonly<Record<string, Example>>): T {
  const copy = structuredClone(document);
  const add = (place: Content | undefined, example: object | undefined) => {
    const json = place?.content?.['application/json'];
    if (json !== undefined && example !== undefined) json.example = example;
  };
  for (const item of Object.values((copy as Document).paths)) {
    for (const operation of Object.values(item)) {
      const own = examples[operation.operationId ?? ''];
      if (own === undefined) continue;
      for (const parameter of operation.parameters ?? []) {
        const value = own.parameters?.[parameter.name];
        if (value !== undefined) parameter.example = value;
      }
      add(operation.requestBody, own.request);
      for (const [status, example] of Object.entries(own.responses))
        add(operation.responses?.[status], example);
    }
  }
  return copy;
}
