import { QueryFailedError } from 'typeorm';

/** SQLSTATE classes whose messages may repeat a value: data exception, constraint or view violation, PL/pgSQL. */
const MAY_REPEAT_VALUES = /^(22|23|44|P0)...$/;
/** A URL in a text, unless it is a file's, whose path is not a secret. */
const ADDRESS = /\b(?!file:)[a-z][a-z\d+.-]*:\/\/[^\s"'<>]*/gi;

/**
 * @returns what is logged of an error: its type, message, stack and causes, and a database error's SQLSTATE and
 *   constraint. No other property is, since TypeORM and pg attach the statement, its values and the row that failed.
 */
export function serializeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  if (error instanceof QueryFailedError) return serializeError(error.driverError);
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  const mayRepeatValues = typeof code === 'string' && MAY_REPEAT_VALUES.test(code);
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    ...(typeof constraint === 'string' && { constraint }),
    message: mayRepeatValues ? 'left out, since it may repeat a value' : withoutSecrets(error.message),
    ...(!mayRepeatValues && error.stack !== undefined && { stack: withoutSecrets(error.stack) }),
    ...(error.cause !== undefined && { cause: serializeError(error.cause) }),
  };
}

/**
 * A library's message may repeat a configured URL.
 *
 * @returns the text without the user, password, query and fragment of each URL in it.
 */
export function withoutSecrets(text: string): string {
  return text.replace(ADDRESS, (address) => {
    if (!URL.canParse(address)) return '[address]';
    const { protocol, host, pathname } = new URL(address);
    return `${protocol}//${host}${pathname}`;
  });
}
