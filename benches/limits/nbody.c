/* Hand-written limit for softened gravity between all pairs of n bodies: every pair once, the partners of a body in
   vectors. Velocity Verlet, and the method of order 8 of Dormand and Prince (coefficients of Hairer's dop853.f) with
   fixed steps and without its estimate of the error. The energy is monitored after every step; its potential comes with the
   forces.  Own code.
   build: gcc -O3 -march=native -ffast-math -o nbody nbody.c -lm, as sums over partners are no vectors otherwise
   use:   nbody verlet|dop853 n h steps                                     */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>
static int n,pad;
static double *m;
static const double eps2=0.01;
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+1e-9*t.tv_nsec;}
static double*al(int k){size_t s=((size_t)k*8+63)/64*64;double*p=aligned_alloc(64,s);memset(p,0,s);return p;}
/* accelerations; q and a are x, y, z one after the other. Returns the potential energy. */
static double forces(const double*restrict q,double*restrict a,const double*restrict m){
  const double*restrict x=q,*restrict y=q+pad,*restrict z=q+2*pad;
  double*restrict ax=a,*restrict ay=a+pad,*restrict az=a+2*pad;
  memset(a,0,3*(size_t)pad*8);
  double V=0;
  for(int i=0;i<n;i++){
    double xi=x[i],yi=y[i],zi=z[i],mi=m[i],sx=0,sy=0,sz=0,v=0;
    #pragma GCC ivdep
    for(int j=i+1;j<n;j++){
      double dx=x[j]-xi,dy=y[j]-yi,dz=z[j]-zi;
      double r2=dx*dx+dy*dy+dz*dz+eps2;
      double w=1/sqrt(r2),w3=w*w*w,g=m[j]*w3,f=mi*w3;
      v+=m[j]*w;
      sx+=g*dx;sy+=g*dy;sz+=g*dz;
      ax[j]-=f*dx;ay[j]-=f*dy;az[j]-=f*dz;
    }
    ax[i]+=sx;ay[i]+=sy;az[i]+=sz;V-=mi*v;
  }
  return V;
}
static double kinetic(const double*v){double e=0;for(int c=0;c<3;c++)for(int i=0;i<n;i++)e+=m[i]*v[c*pad+i]*v[c*pad+i];return e/2;}
static const double A[12][12]={{0},
  {0.05260015195876773187855875},
  {0.01972505698453789945445953,0.0591751709536136983633786},
  {0.0295875854768068491816893,0.0,0.0887627564304205475450679},
  {0.2413651341592666855023698,0.0,-0.884549479328286085344865,0.924834003261792003115738},
  {0.03703703703703703703703704,0.0,0.0,0.1708286087294738712796045,0.1254676875668224250166918},
  {0.037109375,0.0,0.0,0.1702522110195440393149781,0.06021653898045596068502194,-0.017578125},
  {0.03709200011850479271087793,0.0,0.0,0.1703839257122399938102141,0.1072620304463732846518092,-0.01531943774862440175279362,0.008273789163814022887584738},
  {0.6241109587160757171144296,0.0,0.0,-3.360892629446941294068571,-0.8682193468417260068181899,27.59209969944670830494156,20.15406755047789340861868,-43.48988418106995884773663},
  {0.4776625364382643658904339,0.0,0.0,-2.488114619971667641926426,-0.5902908268368429963714465,21.23005144818119423472889,15.27923363288242358325969,-33.28821096898486291944533,-0.02033120170850862613582229},
  {-0.9371424300859873257170402,0.0,0.0,5.186372428844063708300239,1.091437348996729578185003,-8.149787010746926125139973,-18.52006565999695986415662,22.73948709935050428189701,2.493605552679652389870894,-3.046764471898219500382367},
  {2.273310147516538207923598,0.0,0.0,-10.53449546673725019840667,-2.000872058224862499096757,-17.9589318631187989172766,27.94888452941996005084998,-2.858998277135023694740655,-8.872856933530629544335493,12.36056717579430306472662,0.6433927460157635303559705}};
static const double B[12]={0.05429373411656876223805358,0.0,0.0,0.0,0.0,4.45031289275240888144114,1.891517899314500383042816,-5.801203960010584781467211,0.3111643669578198944089161,-0.1521609496625160785561788,0.2013654008040303483747765,0.04471061572777259051768856};
int main(int ac,char**av){
  int dop=!strcmp(av[1],"dop853");n=atoi(av[2]);double h=atof(av[3]);long steps=atol(av[4]);
  pad=(n+7)/8*8;int d=3*pad;
  m=al(pad);
  /* the state: positions, then velocities */
  double*s=al(2*d),*a=al(d),*st=al(2*d),*k[12];
  for(int i=0;i<12;i++)k[i]=al(2*d);
  for(int i=0;i<n;i++){int j=i+1;double r=sqrt((double)j/n);
    m[i]=(1+0.5*sin(3.*j))/n;
    s[i]=cos(2.4*j)*r;s[pad+i]=sin(2.4*j)*r;s[2*pad+i]=0.3*sin(7.*j);
    s[d+i]=-0.5*sin(2.4*j);s[d+pad+i]=0.5*cos(2.4*j);}
  double E0=forces(s,a,m)+kinetic(s+d),drift=0;
  double t0=now();
  for(long step=0;step<steps;step++){
    double V;
    if(!dop){
      for(int i=0;i<d;i++){s[d+i]+=0.5*h*a[i];s[i]+=h*s[d+i];}
      V=forces(s,a,m);
      for(int i=0;i<d;i++)s[d+i]+=0.5*h*a[i];
    }else{
      for(int g=0;g<12;g++){
        memcpy(st,s,2*(size_t)d*8);
        for(int j=0;j<g;j++)if(A[g][j]!=0){double c=h*A[g][j];for(int i=0;i<2*d;i++)st[i]+=c*k[j][i];}
        memcpy(k[g],st+d,(size_t)d*8);
        if(g)forces(st,k[g]+d,m);else memcpy(k[0]+d,a,(size_t)d*8);
      }
      for(int j=0;j<12;j++)if(B[j]!=0){double c=h*B[j];for(int i=0;i<2*d;i++)s[i]+=c*k[j][i];}
      /* the first stage of the next step */
      V=forces(s,a,m);
    }
    double e=fabs(V+kinetic(s+d)-E0);if(!(e<=drift))drift=e;
  }
  double t=now()-t0;
  double pairs=0.5*n*(n-1.);
  printf("%s n=%d h=%g steps=%ld us/step=%.4f ns/pair=%.3f drift=%.3e end=(%.10g,%.10g)\n",av[1],n,h,steps,t/steps*1e6,
    t/steps*1e9/pairs/(dop?12:1),drift,s[0],s[pad]);
}
