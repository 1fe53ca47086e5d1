/** The types of machine.js, which documents them. */
export function freePort(): Promise<number>;
export function programPath(name: string): string | undefined;
export function postgresUser(): { uid?: number; gid?: number };
export function processOf(pid: number):
  | {
      name: string;
      state: string;
      parent: number;
      cpuSeconds: number;
      endedChildrenCpuSeconds: number;
    }
  | undefined;
export function allProcesses(): number[];
export function childrenOf(pid: number): number[];
export function residentMebibytes(pid: number): number;
