/**
 * Visible text: the names of a document hold nothing that people cannot see.
 *
 * An invisible character would make two documents that look alike and have different digests, so
 * a server could tell devices apart. The table of docs/protocol.md, section 5, decides, and not the
 * running engine's Unicode; the tests hold it to client_sdk/schema/visible-1.json.
 */

import { firstAbove } from "./search.js";

// How many code points in turn are left out and kept, from U+0000 on. A number ends with a digit
// from 0 to 71; before it stand those from 72 to 90, of 19 each. The digits are the characters from
// # to ~ without the backslash.
const RUNS =
  "Cm:E/$u<$K%)'*$$$7$qH$I%U%&$Z+>')49%nR$S%_%m@1_%T%2$?%$$.X8$5.2$n4$+%%%9$*$$&'%,%%%'+$'%$(%<%&" +
  "$)'%%9$*$%$%$%%$$('%%&&$*'$$*4-&$,$&$9$*$%$(%-$&$&%$2'%/**$&$+%%%9$*$%$(%,%%%&*&'%$(%5-%$)&&$'" +
  "&%$$$%&%&&&/'(&&$'%$)$18(0$&$:$3&+$&$'*%$&('%-*9$&$:$-$(%,$&$'*%*$$'%-$%00$&$V$&$)'3%=$&$5&;$," +
  "$$%*&$')$$$+)-%&/^'@H%$$$($;$$$:%($$$)%-%'Cm#$G'J$G$2$0HnY$$($%mk%o3$'%*$$$'%L$'%D$'%*$$$'%2$]" +
  "$'%g%C&=)m1%)%td$?&m4*0$*.:,7/0$&$%/W%K%-)-).(-)m4*N(j-B$/'/'$&M%(.O'=).&b%e$@%.)-)1%4cm''P&mO" +
  "+`&2&`*N%.+N(oE$og%)%I%)%+$$$$$$$B%X$2$1%)$6%&$,4;+R4%%>$0&C3D2mh'u2<.8xd$x6%C$n+$R$n'(P$$($%[" +
  "*%1;,*$*$*$*$*$*$*$*$mNP=$m4/nj=/(c$m1%mB(N$V$M$m//R$mmvP&|0&Z,p`7nK+nS%,M[&-)[+j+/)mO.A&m)$.'" +
  "D$Z,1%-%mB;?-)%)%),*$*$`'mY%-)to//:'Tro?q)%mEI*/((=$($$$%$%$mW4q(3d%YK15-)V$6$''($mc'n2$A&)%)%" +
  ")%&&*$*4/$=$6$%$2%1EmV(&'P&m3$0&$RQm^@&T2?'G,A(N(A$H'1Mn1%-)G'G'K+W.$n#p:,9-+n+)%$$O$%&$%:$m#+" +
  ",S6$%(D&>($d['7%U$%(+$&$@%&'-*,*dCJ'/,Y&@%>(=*'/*m+m$ZV0V*Q+-p)B$M$&%%m)K+Mm1?7:,m)'A2b$'1<*-)" +
  "X$5+J,m;$7.5$Oe*$$$'$2$.)_(-)'$+%%%9$*$%$($-%%%&%$)$(*%*&(mgm7$(Am#+-n9Y%IEi.-)06]*-Y>%2'3nS`m" +
  "?m./+%$%+$%$A$%%/,-j+%Q%.>m#+m.@]oR,$P$1-@&C%9$1m$*$%$O&$$%$,+-))$%$H$%$)*-p9<nJ$2U0x_mAmJ$(.n" +
  "Wnl/zcn~4t*rqese*B$-'%m;A%)-j--$*$8(6uKm6m@m&']*4d'/%1pu3+}1M,rv:okT&4'+qGmy'mF(0&,*-%'owdoA-J" +
  "%S$<+mI:jn-7/m2,<mcm0$k$%%$%%%'$/$$$*$e$'%+$*$?$'$($$&*$pW%p'%uY2($2~d*$4%*$%$(niP&1%-'%q+^($}" +
  "[nX%3Lm''-'%vehm'anU'$>$%$$%$$-$'$$$$)$'$$$$$$&$%$$%$$$$$$$$$$%$$%'$*$'$'$$$-$4(&$($4W%oYO'm?/" +
  "2%2$2$H-nA[@0O',*%1)n-yS+0&0&mO/m4*/7/'[+-)K+A%%m)mT$m-$mc/1%(&&(*,<**,&0*Ln&$ZH-z9mxp9EolP.o)" +
  "%pp%1qt]nq*sImmfowN";

let edges: number[] | undefined;

/** Tell whether a text has 1 to `longest` visible characters, and no space that is not seen. */
export function isVisible(text: string, longest: number): boolean {
  if (text.length > 2 * longest || /^ |  | $/.test(text)) return false;
  const table = (edges ??= runningTotals());
  const characters = Array.from(text);
  return (
    characters.length >= 1 &&
    characters.length <= longest &&
    // Behind an odd number of edges: where a run that is kept has begun.
    characters.every((character) => firstAbove(table, character.codePointAt(0)!, Number) % 2 === 1)
  );
}

function runningTotals(): number[] {
  const totals: number[] = [];
  let end = 0;
  let before = 0;
  for (let i = 0; i < RUNS.length; i++) {
    const code = RUNS.charCodeAt(i);
    const digit = code - (code > 92 ? 36 : 35);
    if (digit > 71) {
      before = before * 19 + digit - 72;
      continue;
    }
    totals.push((end += before * 72 + digit));
    before = 0;
  }
  return totals;
}
