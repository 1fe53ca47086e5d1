/** The types of contract.js, which documents them. */
export interface JudgedResponse {
  method: string;
  path: string;
  status: number;
  headers: Record<string, string>;
  text: string;
}

export class Contract {
  constructor(document: object);
  readonly declared: string[];
  readonly headers: string[];
  templateOf(method: string, path: string): string | undefined;
  judge(response: JudgedResponse): { by?: string; violations: string[] };
}
