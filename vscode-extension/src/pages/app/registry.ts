/** The pages that there are. */

import type { ComponentType } from "preact";
import type { Header } from "../contract";
import { ComparePage } from "../compare/ComparePage";
import { DistributedPage } from "../distributed/DistributedPage";
import { FindingsPage } from "../findings/FindingsPage";
import { FlamePage } from "../flame/FlamePage";
import { LinesPage } from "../lines/LinesPage";
import { MemoryPage } from "../memory/MemoryPage";
import { KernelsPage } from "../kernels/KernelsPage";
import { ModulesPage } from "../modules/ModulesPage";
import { OperatorsPage } from "../operators/OperatorsPage";
import { OverviewPage } from "../overview/OverviewPage";
import { StepsPage } from "../steps/StepsPage";
import { TimelinePage } from "../timeline/TimelinePage";
import type { PageProps } from "./address";

export interface Page {
  readonly id: string;
  readonly title: string;
  readonly component: ComponentType<PageProps>;
  /** Whether it has something to show; always, where not given. */
  readonly isThere?: (header: Header) => boolean;
  /** Whether it asks what only a server answers. */
  readonly needsServer?: boolean;
}

/** In the order of the navigation; the first is shown when none is chosen. */
export const PAGES: readonly Page[] = [
  { id: "overview", title: "Overview", component: OverviewPage },
  { id: "lines", title: "Lines", component: LinesPage, isThere: (header) => header.hasLines },
  { id: "flame", title: "Flame graph", component: FlamePage },
  { id: "timeline", title: "Timeline", component: TimelinePage, needsServer: true },
  { id: "operators", title: "Operators", component: OperatorsPage },
  { id: "kernels", title: "Kernels", component: KernelsPage, isThere: ({ isDevice }) => isDevice },
  { id: "modules", title: "Modules", component: ModulesPage, isThere: ({ hasModules }) => hasModules },
  { id: "memory", title: "Memory", component: MemoryPage },
  { id: "distributed", title: "Distributed", component: DistributedPage, isThere: ({ hasRanks }) => hasRanks },
  { id: "steps", title: "Steps", component: StepsPage },
  { id: "findings", title: "Findings", component: FindingsPage },
  { id: "compare", title: "Compare", component: ComparePage, needsServer: true },
];
