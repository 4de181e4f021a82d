import { describeCrashes } from "./matrix.js";

describeCrashes("no lookup");
