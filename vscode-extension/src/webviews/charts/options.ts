/** The options that torch-tb-profiler gives, as far as these charts heed them. */

export interface Options {
  readonly title?: string;
  readonly height?: number | string;
  readonly isStacked?: boolean;
  readonly legend?: "none" | { readonly position?: string };
  readonly colors?: readonly string[];
  readonly pieHole?: number;
  readonly hAxis?: { readonly title?: string };
  readonly vAxis?: { readonly title?: string };
  readonly seriesType?: string;
  readonly series?: Readonly<Record<number, { readonly type?: string; readonly targetAxisIndex?: number }>>;
  readonly page?: "enable" | "disable";
  readonly pageSize?: number;
  readonly sortColumn?: number;
  readonly sortAscending?: boolean;
}

export function heightOf(options: Options): number | undefined {
  return typeof options.height === "number" ? options.height : undefined;
}
